#pragma once

#include <cstddef>
#include <string>

#include "base/aligned_buffer.h"
#include "kernels/isa.h"

namespace orthrus {

/// What this machine can do at best, measured: the limits that bench reports times against and the
/// cost model starts from.
struct MachineLimits {
  std::string cpu;         ///< cpu_name()
  std::string isa;         ///< isa_name of the instruction set measured
  int threads = 0;         ///< measured together
  double read_gbps = 0;    ///< 1e9 bytes of memory read a second by all threads
  double fma_gflops = 0;   ///< 1e9 f32 operations a second, a multiply-add counted as two
  double int8_gops = 0;    ///< 1e9 int8 operations a second, a multiply-add counted as two
  double bf16_gflops = 0;  ///< 1e9 operations a second of products with bf16 weights
  bool disturbed = false;  ///< other programs had the cores meanwhile: the rates are too low
};

/// The higher rates of both: whatever disturbs a measurement makes them lower.
MachineLimits better(MachineLimits limits, const MachineLimits& other);

/// The CPU's name as the system gives it; "unknown" where it gives none.
std::string cpu_name();

/// Measures again and again, in memory that it keeps. On a busy machine the results are too low.
class MachineProbe {
 public:
  /// Maps and writes `bytes` (far more than any cache holds).
  explicit MachineProbe(const ComputeContext& context, size_t bytes = size_t{1} << 30);

  /// The best of ten passes of all threads over the memory, however long they take, then
  /// arithmetic for about `seconds`.
  MachineLimits measure(double seconds) const;

 private:
  ComputeContext context_;
  AlignedBuffer memory_;
};

/// The short form, for a program that has other things to do: about `seconds` in all, two thirds of
/// it for at most ten passes over 256 MiB, which are given back.
MachineLimits measure_machine(const ComputeContext& context, double seconds);

}  // namespace orthrus
