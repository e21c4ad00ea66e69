#include "kernels/probe.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

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
  EXPECT_GE(limits.bf16_gflops, limits.fma_gflops / 2);
  EXPECT_LT(limits.bf16_gflops, 2000.0 * limits.threads);
}

TEST(Probe, MeasuresEveryInstructionSetInTheTimeGiven) {
  for (Isa isa : kIsas) {
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
  for (Isa isa : kIsas) {
    if (!isa_supported(isa)) continue;
    ThreadPool pool(1);
    const MachineLimits limits = measure_machine({isa, pool}, 0.15);
    // NEON: 4 lanes in up to four units.
    const double lanes = isa == Isa::kPortable ? 4 : common_isa(isa) == Isa::kAvx512 ? 16 : 8;
    EXPECT_LT(limits.fma_gflops, 2 * lanes * 2 * 6) << isa_name(isa);
    EXPECT_LT(limits.int8_gops, 2 * 4 * lanes * 2 * 6) << isa_name(isa);
    EXPECT_LT(limits.bf16_gflops, 2 * 2 * lanes * 2 * 6) << isa_name(isa);
  }
}

long page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

// The reported rate is the best pass, so ten passes take at least ten times its time; and none of
// them touches memory for the first time (with huge pages that were 64 faults).
TEST(Probe, ReadsTheSameMemoryTenTimesWhateverThatTakes) {
  const size_t bytes = size_t{128} << 20;
  ThreadPool pool(2);
  const MachineProbe probe({choose_isa(), pool}, bytes);
  for (int round = 0; round < 2; ++round) {
    const long faults = page_faults();
    const auto start = std::chrono::steady_clock::now();
    const MachineLimits limits = probe.measure(0);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    EXPECT_GE(taken.count(), 10 * static_cast<double>(bytes) / (1e9 * limits.read_gbps));
    EXPECT_LT(page_faults() - faults, 32);
    expect_plausible(limits);
  }
}

TEST(Probe, TheCpuHasAName) { EXPECT_FALSE(cpu_name().empty()); }

}  // namespace
}  // namespace orthrus
