#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <type_traits>
#include <vector>

namespace orthrus {

/// Threads this process may use: the least of its CPU affinity mask and the cgroup's CPU quota
/// (rounded up), at least 1.
int usable_threads();

/// A fixed team of threads that run one function together; the caller is thread 0.
/// run() is called from one thread at a time. Workers spin for a bounded while between calls (a
/// pass is a chain of many short runs), then sleep. Every thread runs with round-to-nearest and
/// without flush-to-zero during a call, whatever the host application has set; the caller's own
/// floating-point state is restored after it.
class ThreadPool {
 public:
  /// threads: 0 takes usable_threads(). Error(kInternal) where the system gives no more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls fn(thread) for every thread in [0, size()) and returns when all are done. The first
  /// exception a thread throws is thrown here. No allocation.
  template <typename Fn>
  void run(Fn&& fn) {
    run_raw([](void* f, int thread) { (*static_cast<std::remove_reference_t<Fn>*>(f))(thread); },
            const_cast<void*>(static_cast<const void*>(&fn)));
  }

  /// Splits [0, count) into one contiguous part a thread (sizes differ by at most one) and calls
  /// fn(begin, end) for each part that is not empty.
  template <typename Fn>
  void parallel_for(int64_t count, Fn&& fn) {
    if (count <= 0) return;
    run([&](int thread) {
      int64_t begin = count * thread / size_;
      int64_t end = count * (thread + 1) / size_;
      if (begin < end) fn(begin, end);
    });
  }

 private:
  using RawFn = void (*)(void*, int);
  void run_raw(RawFn fn, void* argument);
  void worker(int thread);
  void stop();
  void call(int thread);

  /// How long a waiting thread spins before it sleeps in the kernel. Spinning bridges the serial
  /// parts of a pass; but where other programs want the cores, or there are more threads than
  /// cores, a thread that spins keeps the one it waits for from running. So each wait learns: long
  /// sleeps make the next spin shorter, short ones (which spinning would have bridged) longer.
  struct Patience {
    explicit Patience(int most_spins) : most(most_spins), spins(most_spins) {}
    template <typename T>
    void wait_while_equal(const std::atomic<T>& value, T old);
    const int most;
    int spins;
  };

  const int size_;
  Patience patience_;  // of the caller's thread
  std::vector<std::thread> threads_;
  RawFn fn_ = nullptr;
  void* argument_ = nullptr;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<int> pending_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace orthrus
