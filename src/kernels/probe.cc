#include "kernels/probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <limits>

#include "base/aligned_buffer.h"
#include "kernels/probe_kernel.h"

namespace orthrus {
namespace {

constexpr size_t kShortProbeBytes = size_t{256} << 20;
constexpr int kPasses = 10;
// A timed run of the arithmetic loops: long beside starting the threads, short beside a time slice.
constexpr double kBurstSeconds = 2e-3;
// A thread that measures has its core for more of the time than this, if no other program wants it.
constexpr double kOwnShare = 0.8;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds of a core that the calling thread has had.
double own_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

const ProbeKernels& kernels_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512Bf16) return avx512bf16_probe();
  if (isa == Isa::kAvx512) return kProbeAvx512;
  if (isa == Isa::kAvxVnni) return kProbeAvxVnni;
  if (isa == Isa::kAvx2) return kProbeAvx2;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return kProbeNeon;
#endif
  return kProbePortable;
}

// Keeps the loops' results, so that the compiler cannot leave them out.
std::atomic<uint32_t> sink;

/// Bytes of each part of `total`: whole pages, so that parts share none.
size_t part_bytes(size_t total, const ThreadPool& pool) {
  return total / static_cast<size_t>(pool.size()) / 4096 * 4096;
}

/// Memory that was written: untouched pages would all be the same zero page. A part is mostly
/// written by the thread that will read it, and so lies near it.
AlignedBuffer written_memory(ThreadPool& pool, size_t bytes) {
  const size_t part = part_bytes(bytes, pool);
  AlignedBuffer memory(part * static_cast<size_t>(pool.size()));
  pool.run([&](int t) { std::memset(memory.data() + static_cast<size_t>(t) * part, t + 1, part); });
  return memory;
}

/// The best of kPasses passes, or of fewer (two at least) where they take until `end`.
double measure_read(ThreadPool& pool, const ProbeKernels& kernels, const AlignedBuffer& memory,
                    double end) {
  const size_t part = part_bytes(memory.size(), pool);
  double best = 0;
  for (int pass = 0; pass < kPasses && (pass < 2 || now() < end); ++pass) {
    const double start = now();
    pool.run(
        [&](int t) { sink ^= kernels.read(memory.data() + static_cast<size_t>(t) * part, part); });
    best = std::max(best, static_cast<double>(memory.size()) / (now() - start));
  }
  return best * 1e-9;
}

/// Runs loop(rounds) once for every thread of the pool (the caller does it for those that start
/// late: such a run is slow and not the best), first in growing numbers of rounds, then until the
/// time is up. Returns the best rate of operations, in 1e9 a second.
template <typename Loop>
double measure_rate(ThreadPool& pool, double ops_per_round, double seconds, Loop loop) {
  const double end = now() + seconds;
  int64_t rounds = 256;
  double best = 0;
  do {
    const double start = now();
    pool.run([&](int) { sink ^= loop(rounds); });
    const double taken = now() - start;
    best = std::max(best, static_cast<double>(rounds) / taken);
    if (taken < kBurstSeconds) rounds *= 2;
  } while (now() < end);
  return best * ops_per_round * pool.size() * 1e-9;
}

/// All but the bandwidth.
MachineLimits measure_arithmetic(const ComputeContext& context, double seconds) {
  const ProbeKernels& kernels = kernels_for(context.isa);
  ThreadPool& pool = context.pool;
  MachineLimits limits;
  limits.cpu = cpu_name();
  limits.isa = isa_name(context.isa);
  limits.threads = pool.size();
  const double each = seconds / (kernels.bf16 ? 3 : 2);
  limits.fma_gflops = measure_rate(pool, kernels.fma_ops, each, [&](int64_t rounds) {
    return static_cast<uint32_t>(kernels.fma(rounds, 0.5f) > 0);
  });
  limits.int8_gops = measure_rate(pool, kernels.int8_ops, each, [&](int64_t rounds) {
    return static_cast<uint32_t>(kernels.int8(rounds, 5));
  });
  limits.bf16_gflops = limits.fma_gflops;
  if (kernels.bf16) {
    limits.bf16_gflops = measure_rate(pool, kernels.bf16_ops, each, [&](int64_t rounds) {
      return static_cast<uint32_t>(kernels.bf16(rounds, 0.5f) > 0);
    });
  }
  return limits;
}

}  // namespace

MachineLimits better(MachineLimits limits, const MachineLimits& other) {
  for (double MachineLimits::*rate : {&MachineLimits::read_gbps, &MachineLimits::fma_gflops,
                                      &MachineLimits::int8_gops, &MachineLimits::bf16_gflops}) {
    limits.*rate = std::max(limits.*rate, other.*rate);
  }
  return limits;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    const size_t begin = line.find_first_not_of(" \t", std::min(colon, line.size() - 1) + 1);
    if (begin != std::string::npos) return line.substr(begin);
  }
  return "unknown";
}

MachineProbe::MachineProbe(const ComputeContext& context, size_t bytes)
    : context_(context), memory_(written_memory(context.pool, bytes)) {}

MachineLimits MachineProbe::measure(double seconds) const {
  MachineLimits limits = measure_arithmetic(context_, seconds);
  limits.read_gbps = measure_read(context_.pool, kernels_for(context_.isa), memory_,
                                  std::numeric_limits<double>::infinity());
  return limits;
}

MachineLimits measure_machine(const ComputeContext& context, double seconds) {
  const double begin = now(), own_begin = own_seconds();
  const double read_end = now() + seconds * 2 / 3;
  const AlignedBuffer memory = written_memory(context.pool, kShortProbeBytes);
  const double read_gbps = measure_read(context.pool, kernels_for(context.isa), memory, read_end);
  MachineLimits limits = measure_arithmetic(context, seconds / 3);
  limits.read_gbps = read_gbps;
  const bool cores_enough = context.pool.size() <= usable_threads();
  limits.disturbed = cores_enough && own_seconds() - own_begin < kOwnShare * (now() - begin);
  return limits;
}

}  // namespace orthrus
