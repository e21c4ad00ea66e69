#pragma once

#include <functional>

namespace orthrus::train {

/// Watches whether the matrix products of a run wait for cores that another program has. Every
/// product waits for all of its threads, so that a single core which is taken can make training
/// many times slower.
///
/// Steps that reach less than a third of the rate of large products are a suspicion only: those of
/// a small model never do. Then products are timed again, and those that wait differ: most of them
/// take far longer than the fastest.
class CoreWatch {
 public:
  /// matmul_flops: of large products, operations a second, 0: unknown, nothing is watched.
  /// measure: how many times the mean of equal products takes the fastest (product_waits).
  CoreWatch(double matmul_flops, std::function<double()> measure);

  /// After a step at that many operations a second; now: seconds on a clock that only grows. What
  /// was measured where there is reason for a warning, at most every ten minutes; else 0.
  double after_step(double flops, double now);

 private:
  double matmul_flops_;
  std::function<double()> measure_;
  int slow_steps_ = 0;  // in a row
  double next_ = 0;     // nothing is measured before
};

/// The mean time of equal small products over the time of the fastest, in about a fifth of a
/// second. Little more than 1 where the cores are free.
double product_waits();

}  // namespace orthrus::train
