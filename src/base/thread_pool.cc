#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/fp_state.h"

namespace orthrus {
namespace {

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // waits for some ten cycles, which "yield" does not
#else
  std::this_thread::yield();
#endif
}

constexpr int kMostSpins = 4096;  // pauses: 100 to 200 microseconds
constexpr int kLeastSpins = 16;
constexpr auto kShortSleep = std::chrono::microseconds(200);

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

ThreadPool::ThreadPool(int threads)
    : size_(threads > 0 ? threads : usable_threads()),
      claims_(std::make_unique<Claim[]>(static_cast<size_t>(size_))),
      patience_(size_ > usable_threads() ? kLeastSpins : kMostSpins) {
  try {
    for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { worker(i); });
  } catch (const std::system_error& error) {
    stop();
    throw Error(ErrorKind::kInternal, fmt::format("cannot start {} threads, only {}: {}", size_,
                                                  threads_.size() + 1, error.code().message()));
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

template <typename T>
void ThreadPool::Patience::wait_while_equal(const std::atomic<T>& value, T old) {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause();
  }
  const auto start = std::chrono::steady_clock::now();
  value.wait(old, std::memory_order_acquire);
  const bool short_sleep = std::chrono::steady_clock::now() - start < kShortSleep;
  spins = short_sleep ? std::min(most, 2 * spins) : std::max(kLeastSpins, spins / 4);
}

void ThreadPool::stop() {
  stopping_.store(true);
  generation_.fetch_add(1);
  generation_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void ThreadPool::call(int part) {
  FpStateGuard guard;
  try {
    fn_(argument_, part);
  } catch (...) {
    if (!failed_.exchange(true)) error_ = std::current_exception();
  }
}

bool ThreadPool::claim(int part, uint32_t generation) {
  uint32_t before = generation - 1;
  return claims_[static_cast<size_t>(part)].generation.compare_exchange_strong(
      before, generation, std::memory_order_acq_rel);
}

void ThreadPool::run_raw(RawFn fn, void* argument) {
  fn_ = fn;
  argument_ = argument;
  uint32_t generation = 0;
  if (size_ > 1) {
    pending_.store(size_ - 1, std::memory_order_relaxed);
    generation = generation_.fetch_add(1) + 1;
    generation_.notify_all();
  }
  call(0);
  for (int part = 1; part < size_; ++part) {
    if (!claim(part, generation)) continue;
    call(part);
    pending_.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (int left; (left = pending_.load(std::memory_order_acquire)) != 0;) {
    patience_.wait_while_equal(pending_, left);
  }
  if (failed_.load(std::memory_order_relaxed)) {
    failed_.store(false);
    std::rethrow_exception(std::exchange(error_, nullptr));
  }
}

void ThreadPool::worker(int part) {
  Patience patience(patience_.most);
  for (uint32_t seen = 0;;) {
    patience.wait_while_equal(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load()) return;
    if (!claim(part, seen)) continue;  // the caller was faster
    call(part);
    if (pending_.fetch_sub(1) == 1) pending_.notify_one();
  }
}

}  // namespace orthrus
