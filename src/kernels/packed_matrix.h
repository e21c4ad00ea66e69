#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "base/tensor_type.h"
#include "kernels/isa.h"
#include "orthrus/options.h"

namespace orthrus {

/// A matrix as it lies in a file: [rows (outputs), cols (inputs)], row-major.
struct MatrixSource {
  TensorType type = TensorType::kF32;
  std::span<const std::byte> data;
  int64_t rows = 0;
  int64_t cols = 0;
  /// See TensorInfo::interleaved_heads; packing puts rows into Hugging Face order.
  int interleaved_heads = 0;
  /// A scale a row for kI8 (adapters), else empty.
  std::span<const float> row_scales = {};
};

/// How the values of a packed matrix are stored. Outputs lie in panels of 16 lanes, k in order
/// (docs/formats.md). Group formats: value = scale[g] * (code - zero) - offset[g] (the offset where
/// has_offset), codes of `bits` bits, a scale a group of `group` inputs, one-level (f16) or
/// two-level (f16 a super-group of 256, integer a group).
struct PackedLayout {
  enum class Kind : uint8_t { kF32, kF16, kBF16, kGroups };
  Kind kind = Kind::kF32;
  int bits = 32;
  int group = 0;
  int zero = 0;
  bool two_level = false;
  bool has_offset = false;
  bool lookup = false;  ///< IQ4_NL: codes index a table of 16 int8 values
};

/// Memory that many packed matrices share: most are smaller than a huge page, and with small pages
/// a pass would spend a good part of its time on address translation. Matrices keep their block
/// alive. Not thread-safe.
class WeightArena {
 public:
  struct Piece {
    std::shared_ptr<const void> block;
    std::byte* data;  ///< zero-filled, aligned to 64 bytes
  };
  /// expected: piece_bytes() of all pieces to come, which then lie in one block without gaps. What
  /// is never taken of it costs no memory; what goes beyond comes from further blocks.
  explicit WeightArena(size_t expected = 0) : expected_(expected) {}

  Piece allocate(size_t bytes);
  /// A block for one piece alone.
  static Piece own(size_t bytes);
  /// What a piece of that many bytes takes of a block.
  static size_t piece_bytes(size_t bytes) { return (bytes + 63) / 64 * 64; }

 private:
  void add_block(size_t bytes);

  size_t expected_;
  std::shared_ptr<AlignedBuffer> block_;
  size_t used_ = 0;
};

/// A weight matrix packed for the matmul kernels; also serves the embedding lookup. Immutable after
/// pack(); its bytes do not depend on the ISA.
class PackedMatrix {
 public:
  PackedMatrix() = default;
  /// What pack() once made: packed_bytes(form, rows, cols, kAuto) bytes at `data`, aligned to 64,
  /// which stay as they are while `block` lives.
  PackedMatrix(TensorType form, int64_t rows, int64_t cols, std::shared_ptr<const void> block,
               const std::byte* data);

  int64_t rows() const { return rows_; }  ///< outputs
  int64_t cols() const { return cols_; }  ///< inputs
  size_t bytes() const { return bytes_; }
  std::span<const std::byte> data() const { return {data_, bytes_}; }
  double bits_per_weight() const {
    return 8.0 * static_cast<double>(bytes()) / static_cast<double>(rows_ * cols_);
  }
  const PackedLayout& layout() const { return layout_; }
  /// The type whose values the packed form holds: kF32, kF16, kBF16 or a block type (kQ8_0 for q8,
  /// kQ4_0 for q4).
  TensorType form() const { return form_; }
  bool shares_memory(const PackedMatrix& other) const { return data_ == other.data_; }
  /// Whether both are the same values in the same memory.
  bool same_as(const PackedMatrix& other) const {
    return shares_memory(other) && rows_ == other.rows_;
  }
  /// The first `rows` rows (1 to rows()) of it, in the same memory.
  PackedMatrix first_rows(int64_t rows) const { return {form_, rows, cols_, block_, data_}; }
  /// "F32", "BF16", "Q4_K": the name of form(), for inspect.
  std::string format_name() const { return std::string(traits(form_).name); }

 private:
  friend struct PackedAccess;  // the kernels
  int64_t rows_ = 0;
  int64_t cols_ = 0;
  TensorType form_ = TensorType::kF32;
  PackedLayout layout_;
  size_t bytes_ = 0;
  std::shared_ptr<const void> block_;
  const std::byte* data_ = nullptr;
};

/// Raise it with every change to what pack() makes of the same source: files of packed matrices of
/// another version are not used (model/packed_cache.h).
inline constexpr int kPackVersion = 1;

/// Packs rows [0, rows) in parallel. kAuto: F32, F16, BF16 stay; block types keep codes and scales
/// exactly; kI8 with row scales becomes q8 (its scales rounded to f16). kF32 and kBF16 dequantise;
/// kQ8 and kQ4 quantise in groups of 32 (a block type that already has at most that many bits is
/// kept as it is). Columns are padded with zeros to a chunk (64 inputs). Throws Error(kInput) for
/// kI8 without row scales, for non-finite scales of blocks, and for values that are not finite or
/// too large for an f16 scale in what is being quantised.
/// The memory comes from the arena, or is the matrix's own where there is none.
PackedMatrix pack(const MatrixSource& source, WeightFormat format, ThreadPool& pool,
                  WeightArena* arena = nullptr);

/// The form() of what pack() makes of such a source.
TensorType packed_form(TensorType type, WeightFormat format);

/// Bytes that pack() will take, for the planner; without reading the data.
size_t packed_bytes(TensorType type, int64_t rows, int64_t cols, WeightFormat format);

/// Row `row` as floats [cols]: the very values the matmul multiplies by.
void unpack_row(const PackedMatrix& matrix, int64_t row, float* out);

/// Values of whole blocks, as ggml defines them. `values.size()` is a multiple of the block size
/// and matches `data`. For biases, norms, tests and the trainer.
void dequantize(TensorType type, std::span<const std::byte> data, std::span<float> values);

}  // namespace orthrus
