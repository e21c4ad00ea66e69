#pragma once

#include <string>

#include "kernels/isa.h"

namespace orthrus {

/// What this machine can do at best, measured: the limits that bench reports times against and the
/// cost model starts from.
struct MachineLimits {
  std::string cpu;        ///< cpu_name()
  std::string isa;        ///< isa_name of the instruction set measured
  int threads = 0;        ///< measured together
  double read_gbps = 0;   ///< 1e9 bytes of memory read a second by all threads
  double fma_gflops = 0;  ///< 1e9 f32 operations a second, a multiply-add counted as two
  double int8_gops = 0;   ///< 1e9 int8 operations a second, a multiply-add counted as two
};

/// The CPU's name as the system gives it; "unknown" where it gives none.
std::string cpu_name();

/// Measures for about `seconds`, two thirds of it reading memory: the best of up to 10 passes of
/// all threads over 1 GiB, over 256 MiB where it gets less than a second. That memory is given
/// back. On a busy machine the results are too low.
MachineLimits measure_machine(const ComputeContext& context, double seconds);

}  // namespace orthrus
