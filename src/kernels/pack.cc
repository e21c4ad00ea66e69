#include <algorithm>
#include <vector>

#include "base/error.h"
#include "kernels/pack_panel.h"
#include "kernels/packed_form.h"
#include "kernels/packed_matrix.h"
#include "kernels/source_rows.h"

namespace orthrus {
namespace {

bool is_block(TensorType type) { return group_form(type).group != 0; }

int code_bits(TensorType type) {
  const GroupForm form = group_form(type);
  return form.low_bits + form.high_bits;
}

PackedLayout layout_of(TensorType form) {
  switch (form) {
    case TensorType::kF32:
      return {.kind = PackedLayout::Kind::kF32, .bits = 32};
    case TensorType::kF16:
      return {.kind = PackedLayout::Kind::kF16, .bits = 16};
    case TensorType::kBF16:
      return {.kind = PackedLayout::Kind::kBF16, .bits = 16};
    default:
      break;
  }
  const GroupForm g = group_form(form);
  return {.kind = PackedLayout::Kind::kGroups,
          .bits = g.low_bits + g.high_bits,
          .group = g.group,
          .zero = g.zero,
          .two_level = g.two_level,
          .has_offset = g.has_offset,
          .lookup = g.lookup};
}

}  // namespace

TensorType packed_form(TensorType type, WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return TensorType::kF32;
    case WeightFormat::kBF16:
      return TensorType::kBF16;
    case WeightFormat::kQ8:
      return is_block(type) ? type : TensorType::kQ8_0;
    case WeightFormat::kQ4:
      return is_block(type) && code_bits(type) <= 4 ? type : TensorType::kQ4_0;
    case WeightFormat::kAuto:
      break;
  }
  return type == TensorType::kI8 ? TensorType::kQ8_0 : type;
}

/// Fills the panels of one matrix; each thread takes a run of panels.
class MatrixPacker {
 public:
  MatrixPacker(const MatrixSource& source, TensorType form) : rows_(source), form_(form) {}

  PackedMatrix pack(ThreadPool& pool, WeightArena* arena) const {
    const int64_t panels = panel_count(rows());
    const size_t bytes = panel_bytes(form_, cols());
    const size_t all = static_cast<size_t>(panels) * bytes;
    const WeightArena::Piece memory = arena ? arena->allocate(all) : WeightArena::own(all);
    pool.parallel_for(panels, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(kLanes * cols()));
      for (int64_t p = begin; p < end; ++p) {
        std::byte* panel = memory.data + static_cast<size_t>(p) * bytes;
        is_block(form_) ? pack_groups(p, values, panel) : pack_plain(p, values, panel);
      }
    });
    return {form_, rows(), cols(), memory.block, memory.data};
  }

 private:
  TensorType source_type() const { return rows_.source().type; }
  int64_t rows() const { return rows_.source().rows; }
  int64_t cols() const { return rows_.source().cols; }

  int64_t lanes_of(int64_t p) const { return std::min(kLanes, rows() - p * kLanes); }

  void read_values(int64_t p, std::vector<float>& values) const {
    for (int64_t lane = 0; lane < lanes_of(p); ++lane) {
      rows_.values(p * kLanes + lane, values.data() + lane * cols());
    }
  }

  void pack_plain(int64_t p, std::vector<float>& values, std::byte* panel) const {
    const PanelShape shape{lanes_of(p), cols()};
    if (form_ != source_type()) {
      read_values(p, values);
      if (form_ == TensorType::kF32) return interleave_f32(shape, values.data(), panel);
      return interleave_as_bf16(shape, values.data(), panel);
    }
    const std::byte* raw[kLanes];
    for (int64_t lane = 0; lane < shape.lanes; ++lane)
      raw[lane] = rows_.raw(p * kLanes + lane).data();
    interleave_raw(form_, shape, raw, panel);
  }

  void pack_groups(int64_t p, std::vector<float>& values, std::byte* panel) const {
    const GroupForm form = group_form(form_);
    const int64_t block = traits(form_).block_elements;
    if (rows_.quantises(form_)) read_values(p, values);
    ChunkPacker chunk(form);
    DecodedBlock decoded;
    for (int64_t k = 0; k < cols(); k += form.chunk, panel += form.bytes()) {
      // What is missing at the end or below is zero; the rest is written over.
      if (k == 0 || k + form.chunk > cols()) chunk.clear();
      for (int64_t lane = 0; lane < lanes_of(p); ++lane) {
        for (int64_t i = 0; i < form.chunk && k + i < cols(); i += block) {
          rows_.block(form_, p * kLanes + lane, k + i, values.data() + lane * cols(), decoded);
          chunk.put(lane, i, block, decoded);
        }
      }
      chunk.store(panel);
    }
  }

  SourceRows rows_;
  TensorType form_;
};

PackedMatrix::PackedMatrix(TensorType form, int64_t rows, int64_t cols,
                           std::shared_ptr<const void> block, const std::byte* data)
    : rows_(rows),
      cols_(cols),
      form_(form),
      layout_(layout_of(form)),
      bytes_(packed_bytes(form, rows, cols, WeightFormat::kAuto)),
      block_(std::move(block)),
      data_(data) {}

PackedMatrix pack(const MatrixSource& source, WeightFormat format, ThreadPool& pool,
                  WeightArena* arena) {
  const int64_t block = traits(source.type).block_elements;
  ORTHRUS_CHECK(source.rows > 0 && source.cols > 0 && source.cols % block == 0);
  ORTHRUS_CHECK(source.data.size() ==
                static_cast<size_t>(source.rows) * row_bytes(source.type, source.cols));
  ORTHRUS_CHECK(source.interleaved_heads == 0 ||
                source.rows % (2 * static_cast<int64_t>(source.interleaved_heads)) == 0);
  if (source.type == TensorType::kI8 &&
      source.row_scales.size() != static_cast<size_t>(source.rows)) {
    fail("int8 weights need a scale a row: expected {}, found {}", source.rows,
         source.row_scales.size());
  }
  return MatrixPacker(source, packed_form(source.type, format)).pack(pool, arena);
}

size_t packed_bytes(TensorType type, int64_t rows, int64_t cols, WeightFormat format) {
  return static_cast<size_t>(panel_count(rows)) * panel_bytes(packed_form(type, format), cols);
}

}  // namespace orthrus
