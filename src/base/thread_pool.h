#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

namespace orthrus {

/// Threads this process may use: the least of its CPU affinity mask and the cgroup's CPU quota
/// (rounded up), at least 1.
int usable_threads();

/// A fixed team of threads, the caller among them, that do the parts of one piece of work together,
/// one part each. Parts whose thread has not begun when the caller is through with its own are done
/// by the caller: where other programs have the cores, a call takes no longer than the caller alone
/// would, instead of waiting for the scheduler to wake a thread.
///
/// run() is called from one thread at a time. Workers spin for a bounded while between calls (a
/// pass is a chain of many short runs), then sleep. Every part runs with round-to-nearest and
/// without flush-to-zero, whatever the host application has set; the caller's own floating-point
/// state is restored after it.
class ThreadPool {
 public:
  /// threads: 0 takes usable_threads(). Error(kInternal) where the system gives no more threads.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  /// Calls fn(part) once for every part in [0, size()), part 0 on the caller's thread, and returns
  /// when all are done. Parts must not wait for each other: two may run in turn on one thread. The
  /// first exception a part throws is thrown here. No allocation.
  template <typename Fn>
  void run(Fn&& fn) {
    run_raw([](void* f, int part) { (*static_cast<std::remove_reference_t<Fn>*>(f))(part); },
            const_cast<void*>(static_cast<const void*>(&fn)));
  }

  /// Splits [0, count) into size() contiguous parts (sizes differ by at most one) and calls
  /// fn(begin, end) for each part that is not empty.
  template <typename Fn>
  void parallel_for(int64_t count, Fn&& fn) {
    if (count <= 0) return;
    run([&](int part) {
      int64_t begin = count * part / size_;
      int64_t end = count * (part + 1) / size_;
      if (begin < end) fn(begin, end);
    });
  }

 private:
  using RawFn = void (*)(void*, int);
  void run_raw(RawFn fn, void* argument);
  void worker(int part);
  void stop();
  void call(int part);
  bool claim(int part, uint32_t generation);

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

  /// The last run whose part somebody has begun: every part is claimed once in every run, so it is
  /// always this run or the one before.
  struct alignas(64) Claim {
    std::atomic<uint32_t> generation{0};
  };

  const int size_;
  const std::unique_ptr<Claim[]> claims_;  // [size_]
  Patience patience_;                      // of the caller's thread
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
