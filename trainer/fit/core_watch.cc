#include "trainer/fit/core_watch.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "cli/terminal.h"

namespace orthrus::train {

CoreWatch::CoreWatch(double matmul_flops, std::function<double()> measure)
    : matmul_flops_(matmul_flops), measure_(std::move(measure)) {}

double CoreWatch::after_step(double flops, double now) {
  constexpr int kSteps = 5;
  constexpr double kLeastShare = 1.0 / 3, kLeastWait = 3;
  constexpr double kMeasureSeconds = 60, kWarnSeconds = 600;
  slow_steps_ = flops < kLeastShare * matmul_flops_ ? slow_steps_ + 1 : 0;
  if (slow_steps_ < kSteps || now < next_) return 0;
  const double waits = measure_();
  const bool warn = waits >= kLeastWait;
  next_ = now + (warn ? kWarnSeconds : kMeasureSeconds);
  return warn ? waits : 0;
}

double product_waits() {
  const at::NoGradGuard no_grad;
  // Some 50 microseconds on two cores: many fit between two turns of another program.
  constexpr int64_t kRows = 64, kWidth = 256;
  constexpr int kLeast = 16;
  constexpr double kSeconds = 0.2;
  const at::Tensor x = at::ones({kRows, kWidth}), weight = at::ones({kWidth, kWidth});
  at::Tensor out = at::empty({kRows, kWidth});
  const double begin = monotonic_seconds();
  double last = begin, fastest = 1e9;
  int products = 0;
  while (products < kLeast || last - begin < kSeconds) {
    at::mm_out(out, x, weight);
    const double now = monotonic_seconds();
    fastest = std::min(fastest, now - last);
    last = now;
    ++products;
  }
  return (last - begin) / (products * std::max(fastest, 1e-9));
}

}  // namespace orthrus::train
