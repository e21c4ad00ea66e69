#include "kernels/probe.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace orthrus {
namespace {

// Rates that no machine this runs on falls below or exceeds, even a busy one under a sanitizer.
void expect_plausible(const MachineLimits& limits) {
  EXPECT_GT(limits.read_gbps, 0.05);
  EXPECT_LT(limits.read_gbps, 5000);
  EXPECT_GT(limits.fma_gflops, 0.05);
  EXPECT_LT(limits.fma_gflops, 1000.0 * limits.threads);
  EXPECT_GT(limits.int8_gops, 0.05);
  EXPECT_LT(limits.int8_gops, 5000.0 * limits.threads);
}

TEST(Probe, MeasuresEveryInstructionSetInTheTimeGiven) {
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (!isa_supported(isa)) continue;
    ThreadPool pool(2);
    const auto start = std::chrono::steady_clock::now();
    const MachineLimits limits = measure_machine({isa, pool}, 0.15);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    EXPECT_LT(taken.count(), 10.0);
    EXPECT_EQ(limits.isa, isa_name(isa));
    EXPECT_EQ(limits.threads, 2);
    EXPECT_EQ(limits.cpu, cpu_name());
    expect_plausible(limits);
    RecordProperty(std::string(isa_name(isa)) + "_read_gbps", std::to_string(limits.read_gbps));
  }
}

// A loop that the compiler had removed or shortened would be far faster than the machine: the
// arithmetic of one thread is bounded by units * lanes * 2 operations * 6 GHz.
TEST(Probe, ArithmeticStaysBelowWhatTheUnitsCanDo) {
  for (Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (!isa_supported(isa)) continue;
    ThreadPool pool(1);
    const MachineLimits limits = measure_machine({isa, pool}, 0.15);
    const double lanes = isa == Isa::kPortable ? 4 : isa == Isa::kAvx2 ? 8 : 16;
    EXPECT_LT(limits.fma_gflops, 2 * lanes * 2 * 6) << isa_name(isa);
    EXPECT_LT(limits.int8_gops, 2 * 4 * lanes * 2 * 6) << isa_name(isa);
  }
}

TEST(Probe, TheCpuHasAName) { EXPECT_FALSE(cpu_name().empty()); }

}  // namespace
}  // namespace orthrus
