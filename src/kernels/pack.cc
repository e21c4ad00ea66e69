#include <cmath>
#include <cstring>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/ggml_blocks.h"
#include "kernels/pack_panel.h"
#include "kernels/packed_form.h"
#include "kernels/packed_matrix.h"
#include "kernels/quantize.h"

namespace orthrus {
namespace {

bool is_block(TensorType type) { return group_form(type).group != 0; }

int code_bits(TensorType type) {
  const GroupForm form = group_form(type);
  return form.low_bits + form.high_bits;
}

// What pack() makes of a source.
TensorType target_form(TensorType type, WeightFormat format) {
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

// Reads rows of a source in the order that the packed matrix wants them.
class SourceRows {
 public:
  explicit SourceRows(const MatrixSource& source)
      : source_(source), bytes_(row_bytes(source.type, source.cols)) {}

  std::span<const std::byte> raw(int64_t row) const {
    return source_.data.subspan(static_cast<size_t>(file_row(row)) * bytes_, bytes_);
  }

  void values(int64_t row, float* out) const {
    dequantize(source_.type, raw(row), {out, static_cast<size_t>(source_.cols)});
    if (source_.type != TensorType::kI8) return;
    const float scale = row_scale(row);
    for (int64_t k = 0; k < source_.cols; ++k) out[k] *= scale;
  }

  float row_scale(int64_t row) const {
    return source_.row_scales[static_cast<size_t>(file_row(row))];
  }

  const MatrixSource& source() const { return source_; }

 private:
  // ggml's rotary embedding interleaves the two halves of a head (see TensorInfo).
  int64_t file_row(int64_t row) const {
    if (source_.interleaved_heads == 0) return row;
    const int64_t head_dim = source_.rows / source_.interleaved_heads;
    const int64_t i = row % head_dim;
    return row - i + 2 * (i % (head_dim / 2)) + i / (head_dim / 2);
  }

  const MatrixSource& source_;
  size_t bytes_;
};

}  // namespace

/// Fills the panels of one matrix; each thread takes a run of panels.
class MatrixPacker {
 public:
  MatrixPacker(const MatrixSource& source, TensorType form, WeightArena* arena)
      : rows_(source), form_(form) {
    matrix_.rows_ = source.rows;
    matrix_.cols_ = source.cols;
    matrix_.form_ = form;
    matrix_.layout_ = layout_of(form);
    panel_bytes_ = panel_bytes(form, source.cols);
    matrix_.bytes_ = static_cast<size_t>(panel_count(source.rows)) * panel_bytes_;
    matrix_.memory_ = arena ? arena->allocate(matrix_.bytes_) : WeightArena::own(matrix_.bytes_);
  }

  PackedMatrix pack(ThreadPool& pool) {
    pool.parallel_for(panel_count(matrix_.rows_), [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(kLanes * matrix_.cols_));
      for (int64_t p = begin; p < end; ++p) {
        std::byte* panel = matrix_.memory_.data + static_cast<size_t>(p) * panel_bytes_;
        is_block(form_) ? pack_groups(p, values, panel) : pack_plain(p, values, panel);
      }
    });
    return std::move(matrix_);
  }

 private:
  TensorType source_type() const { return rows_.source().type; }

  int64_t lanes_of(int64_t p) const { return std::min(kLanes, matrix_.rows_ - p * kLanes); }

  void read_values(int64_t p, std::vector<float>& values) const {
    for (int64_t lane = 0; lane < lanes_of(p); ++lane) {
      rows_.values(p * kLanes + lane, values.data() + lane * matrix_.cols_);
    }
  }

  void pack_plain(int64_t p, std::vector<float>& values, std::byte* panel) const {
    const PanelShape shape{lanes_of(p), matrix_.cols_};
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
    const bool from_values = source_type() != form_ && source_type() != TensorType::kI8;
    if (from_values) read_values(p, values);
    ChunkPacker chunk(form);
    DecodedBlock decoded;
    for (int64_t k = 0; k < matrix_.cols_; k += form.chunk, panel += form.bytes()) {
      chunk.clear();
      for (int64_t lane = 0; lane < lanes_of(p); ++lane) {
        for (int64_t i = 0; i < form.chunk && k + i < matrix_.cols_; i += block) {
          const int64_t row = p * kLanes + lane;
          from_values ? quantize(values.data() + lane * matrix_.cols_, row, k + i, decoded)
                      : read_block(row, k + i, decoded);
          chunk.put(lane, i, block, decoded);
        }
      }
      chunk.store(panel);
    }
  }

  void read_block(int64_t row, int64_t k, DecodedBlock& out) const {
    const std::byte* raw = rows_.raw(row).data();
    if (source_type() == TensorType::kI8) return read_i8(raw, row, k, out);
    const TensorTypeTraits& t = traits(form_);
    decode_block(form_, raw + static_cast<size_t>(k / t.block_elements) * t.block_bytes, out);
    if (!std::isfinite(f16_to_f32(out.scale)) || !std::isfinite(f16_to_f32(out.offset))) {
      fail("row {}, column {}: the scale of a {} block is not finite", row, k, t.name);
    }
  }

  void read_i8(const std::byte* raw, int64_t row, int64_t k, DecodedBlock& out) const {
    const int64_t count = std::min<int64_t>(kQuantBlock, matrix_.cols_ - k);
    std::memset(out.codes, 128, kQuantBlock);
    for (int64_t i = 0; i < count; ++i) {
      out.codes[i] = static_cast<uint8_t>(std::to_integer<uint8_t>(raw[k + i]) ^ 0x80);
    }
    out.scale = f32_to_f16(rows_.row_scale(row));
    out.offset = 0;
    if (!std::isfinite(f16_to_f32(out.scale))) {
      fail("row {}: its scale {} is not a finite half", row, rows_.row_scale(row));
    }
  }

  void quantize(const float* values, int64_t row, int64_t k, DecodedBlock& out) const {
    float padded[kQuantBlock] = {};
    const int64_t count = std::min<int64_t>(kQuantBlock, matrix_.cols_ - k);
    std::memcpy(padded, values + k, static_cast<size_t>(count) * sizeof(float));
    bool fits = form_ == TensorType::kQ8_0 ? quantize_q8(padded, out) : quantize_q4(padded, out);
    if (!fits) {
      fail("row {}, columns {} to {}: a value is not finite or too large to be quantised", row, k,
           k + count - 1);
    }
  }

  SourceRows rows_;
  TensorType form_;
  PackedMatrix matrix_;
  size_t panel_bytes_;
};

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
  return MatrixPacker(source, target_form(source.type, format), arena).pack(pool);
}

size_t packed_bytes(TensorType type, int64_t rows, int64_t cols, WeightFormat format) {
  return static_cast<size_t>(panel_count(rows)) * panel_bytes(target_form(type, format), cols);
}

}  // namespace orthrus
