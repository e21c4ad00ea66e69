#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fp_state.h"

namespace orthrus {
namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Long enough to bridge the serial parts of a pass (microseconds), short enough to leave the core
// to others between requests.
constexpr int kSpins = 20000;
constexpr int kYields = 50;
// A thread that waits for others yields after this many pauses, so that more threads than cores
// make a pass slow but never stall it.
constexpr int kSpinsBeforeYield = 4000;

// CPUs granted by the cgroup (version 2, then 1), or 0 where there is no limit.
int cgroup_cpus() {
  double quota = 0;
  double period = 0;
  std::string text;
  if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file >> text >> period && text != "max") {
    quota = std::strtod(text.c_str(), nullptr);
  } else {
    std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    if (!(quota_file >> quota && period_file >> period)) return 0;
  }
  if (quota <= 0 || period <= 0) return 0;
  return std::max(1, static_cast<int>(std::ceil(quota / period)));
}

}  // namespace

int usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = sched_getaffinity(0, sizeof(set), &set) == 0
                  ? CPU_COUNT(&set)
                  : static_cast<int>(std::thread::hardware_concurrency());
  if (int limit = cgroup_cpus(); limit > 0) count = std::min(count, limit);
  return std::max(1, count);
}

ThreadPool::ThreadPool(int threads) : size_(threads > 0 ? threads : usable_threads()) {
  for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { worker(i); });
}

ThreadPool::~ThreadPool() {
  {
    std::lock_guard lock(mutex_);
    stop_.store(true);
    generation_.fetch_add(1);
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::call(int thread) {
  FpStateGuard guard;
  try {
    fn_(argument_, thread);
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

void ThreadPool::run_raw(RawFn fn, void* argument) {
  fn_ = fn;
  argument_ = argument;
  if (size_ > 1) {
    pending_.store(size_ - 1, std::memory_order_relaxed);
    generation_.fetch_add(1);
    // A worker counts itself as a sleeper before it looks at generation_ for the last time, so
    // either it sees the new generation or we see it asleep.
    if (sleepers_.load() > 0) {
      { std::lock_guard lock(mutex_); }
      wake_.notify_all();
    }
  }
  call(0);
  for (int spins = 0; pending_.load(std::memory_order_acquire) != 0;) {
    pause();
    if (++spins >= kSpinsBeforeYield) {
      sched_yield();
      spins = 0;
    }
  }
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void ThreadPool::worker(int thread) {
  uint32_t seen = 0;
  for (;;) {
    int spins = 0;
    int yields = 0;
    while (generation_.load(std::memory_order_acquire) == seen) {
      if (++spins < kSpins) {
        pause();
      } else if (++yields < kYields) {
        sched_yield();
        spins = kSpins - kSpinsBeforeYield;
      } else {
        std::unique_lock lock(mutex_);
        sleepers_.fetch_add(1);
        wake_.wait(lock, [&] { return generation_.load() != seen; });
        sleepers_.fetch_sub(1);
      }
    }
    seen = generation_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    call(thread);
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
}

}  // namespace orthrus
