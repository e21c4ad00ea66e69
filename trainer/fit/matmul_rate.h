#pragma once

namespace orthrus::train {

/// How fast libtorch multiplies float32 matrices on this machine's CPU.
struct MatmulRate {
  double gflops = 0;       ///< 1e9 operations a second, a multiply-add counted as two
  double peak_gflops = 0;  ///< of the CPU's multiply-add instructions, by as many threads

  /// A BLAS that fits the CPU reaches well over half of its peak.
  bool slow() const { return gflops < peak_gflops / 3; }
};

/// Measures both, in about a fifth of a second. On a busy machine the results are too low.
MatmulRate measure_matmul_rate();

}  // namespace orthrus::train
