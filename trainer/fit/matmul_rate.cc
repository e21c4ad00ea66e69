#include "trainer/fit/matmul_rate.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>

#include "base/thread_pool.h"
#include "kernels/probe.h"

namespace orthrus::train {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// The best of the products that fit into `seconds`, two at least.
double measure_products(double seconds) {
  constexpr int64_t kRows = 384, kInner = 1024, kCols = 1024;
  const at::Tensor x = at::ones({kRows, kInner}), weight = at::ones({kCols, kInner});
  at::Tensor out = at::empty({kRows, kCols});
  const double end = now() + seconds;
  double best = 0;
  for (int i = 0; i < 2 || now() < end; ++i) {
    const double begin = now();
    at::mm_out(out, x, weight.t());
    best = std::max(best, 2.0 * kRows * kInner * kCols / (now() - begin));
  }
  return best * 1e-9;
}

}  // namespace

MatmulRate measure_matmul_rate() {
  const at::NoGradGuard no_grad;
  constexpr double kSeconds = 0.08;
  constexpr size_t kProbeBytesPerThread = size_t{1} << 16;  // its bandwidth is of no interest here
  ThreadPool pool(at::get_num_threads());
  const MachineProbe probe({choose_isa(), pool},
                           kProbeBytesPerThread * static_cast<size_t>(pool.size()));
  const double peak = probe.measure(kSeconds).fma_gflops;
  return {measure_products(kSeconds), peak};
}

}  // namespace orthrus::train
