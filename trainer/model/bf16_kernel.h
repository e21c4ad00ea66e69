#pragma once

#include <cstdint>

namespace orthrus::train {

/// Rows [0, rows) of a times one panel, over `pairs` pairs of the inner dimension.
struct Bf16PanelTask {
  const uint16_t* a;
  int64_t a_stride;  ///< values
  int64_t rows;
  const uint32_t* panel;
  int64_t pairs;
  float* out;
  int64_t out_stride;
  int64_t cols;  ///< of this panel, 1 to 32
  bool add;      ///< to what `out` holds
};

/// The parts that need AVX512_BF16.
struct Bf16Kernel {
  void (*multiply)(const Bf16PanelTask& task);
  /// to [cols rounded up to even], zero behind the end.
  void (*round_row)(const float* x, int64_t cols, uint16_t* to);
  /// `cols` (1 to 32) columns of two rows, to [32]; second may be null for a row of zeros.
  void (*pair_rows)(const float* first, const float* second, int64_t cols, uint32_t* to);
};

/// Null where it was not compiled for this architecture.
const Bf16Kernel* bf16_kernel();

}  // namespace orthrus::train
