#include "base/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/fp_state.h"

namespace orthrus {
namespace {

TEST(ThreadPool, EveryPartRunsOnceInEveryCall) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    ASSERT_EQ(pool.size(), threads);
    std::vector<int> calls(static_cast<size_t>(threads));
    for (int i = 0; i < 50; ++i) pool.run([&](int t) { ++calls[static_cast<size_t>(t)]; });
    for (int count : calls) EXPECT_EQ(count, 50);
  }
}

// Parts that take long enough for every thread to begin its own.
TEST(ThreadPool, ThreadsShareTheParts) {
  ThreadPool pool(4);
  std::vector<std::thread::id> ids(4);
  pool.run([&](int part) {
    ids[static_cast<size_t>(part)] = std::this_thread::get_id();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  EXPECT_EQ(ids[0], std::this_thread::get_id());
  EXPECT_EQ(std::set<std::thread::id>(ids.begin(), ids.end()).size(), 4u);
}

std::atomic<bool> held{false};
std::atomic<bool> release_held{false};

// A worker that the scheduler does not let run: here one that a signal handler holds.
TEST(ThreadPool, TheCallerDoesThePartOfAThreadThatDoesNotRun) {
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {
    held = true;
    while (!release_held) usleep(1000);
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  ThreadPool pool(2);
  std::atomic<pthread_t> worker{};
  pool.run([&](int part) {
    if (part == 1) worker = pthread_self();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  });
  ASSERT_NE(worker.load(), pthread_self());
  ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
  while (!held) usleep(1000);
  for (int call = 0; call < 3; ++call) {
    std::vector<std::thread::id> ids(2);
    pool.run([&](int part) { ids[static_cast<size_t>(part)] = std::this_thread::get_id(); });
    EXPECT_EQ(ids, std::vector(2, std::this_thread::get_id()));
  }
  release_held = true;
  // It slept through three calls and takes part again.
  std::thread::id again = std::this_thread::get_id();
  for (int call = 0; call < 50 && again == std::this_thread::get_id(); ++call) {
    pool.run([&](int part) {
      if (part == 1) again = std::this_thread::get_id();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    });
  }
  EXPECT_NE(again, std::this_thread::get_id());
  sigaction(SIGUSR1, &before, nullptr);
}

TEST(ThreadPool, SleepingWorkersWakeUp) {
  ThreadPool pool(3);
  std::atomic<int> calls{0};
  for (int i = 0; i < 3; ++i) {
    pool.run([&](int) { ++calls; });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // longer than they spin
  }
  EXPECT_EQ(calls, 9);
}

TEST(ThreadPool, ParallelForCoversEachIndexOnceInEvenParts) {
  for (int threads = 1; threads <= 8; ++threads) {
    ThreadPool pool(threads);
    for (int64_t count : {0, 1, 2, 7, 8, 9, 100}) {
      std::vector<int> seen(static_cast<size_t>(count));
      std::mutex mutex;
      std::vector<int64_t> parts;
      pool.parallel_for(count, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        std::lock_guard lock(mutex);
        parts.push_back(end - begin);
      });
      for (int n : seen) EXPECT_EQ(n, 1);
      EXPECT_EQ(static_cast<int64_t>(parts.size()), std::min<int64_t>(threads, count));
      for (int64_t part : parts) {
        EXPECT_GE(part, count / threads);
        EXPECT_LE(part, count / threads + 1);
      }
    }
  }
}

TEST(ThreadPool, AnExceptionOfAnyThreadIsThrownAndThePoolGoesOn) {
  for (int threads : {1, 2, 5, 8}) {
    ThreadPool pool(threads);
    for (int thrower = 0; thrower < threads; ++thrower) {
      std::atomic<int> finished{0};
      try {
        pool.run([&](int t) {
          if (t == thrower) throw std::runtime_error("thread " + std::to_string(t));
          ++finished;
        });
        FAIL() << "nothing was thrown";
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "thread " + std::to_string(thrower));
      }
      EXPECT_EQ(finished, threads - 1) << "run() returned before every thread was done";
      EXPECT_NO_THROW(pool.run([](int) {}));
    }
    EXPECT_THROW(pool.run([](int) { throw std::runtime_error("all"); }), std::runtime_error);
    EXPECT_NO_THROW(pool.run([](int) {}));
  }
}

TEST(ThreadPool, MoreThreadsThanCoresStillFinish) {
  ThreadPool pool(4 * usable_threads());
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 60; ++i) pool.run([&](int t) { sum += t; });
  EXPECT_EQ(sum, 60 * int64_t{pool.size()} * (pool.size() - 1) / 2);
}

TEST(ThreadPool, ZeroTakesTheUsableThreads) {
  EXPECT_GE(usable_threads(), 1);
  EXPECT_EQ(ThreadPool(0).size(), usable_threads());
}

/// Whether arithmetic on this thread rounds to nearest and keeps subnormals.
bool default_arithmetic() {
  volatile float one = 1.0f, tiny = 0x1p-30f, smallest = 0x1p-126f;
  volatile float up = one + tiny, down = -one - tiny, subnormal = smallest * 0.25f;
  return up == 1.0f && down == -1.0f && subnormal != 0.0f;
}

/// A host application's unusual state: rounding up and subnormals flushed.
class UnusualState {
 public:
  UnusualState() {
    std::fegetenv(&saved_);
    std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040);  // flush to zero, subnormals are zero
#elif defined(__aarch64__)
    uint64_t control;
    asm volatile("mrs %0, fpcr" : "=r"(control));
    asm volatile("msr fpcr, %0" : : "r"(control | 1u << 24));
#endif
  }
  ~UnusualState() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
};

TEST(FpState, TheGuardSetsTheDefaultAndRestores) {
  ASSERT_TRUE(default_arithmetic());
  UnusualState unusual;
  ASSERT_FALSE(default_arithmetic());
  {
    FpStateGuard guard;
    EXPECT_TRUE(default_arithmetic());
  }
  EXPECT_FALSE(default_arithmetic());
}

TEST(FpState, EveryThreadOfACallHasTheDefaultAndTheCallerKeepsItsOwn) {
  UnusualState unusual;
  ThreadPool pool(4);  // its threads inherit the unusual state
  std::atomic<int> good{0};
  pool.run([&](int) { good += default_arithmetic(); });
  EXPECT_EQ(good, 4);
  EXPECT_FALSE(default_arithmetic());
  EXPECT_THROW(pool.run([](int) { throw std::runtime_error("x"); }), std::runtime_error);
  EXPECT_FALSE(default_arithmetic());
}

#if !defined(ORTHRUS_SANITIZED)
// More threads than the system gives are an Error, and those that did start are joined.
TEST(ThreadPool, ThreadsThatCannotStartAreAnError) {
  const auto attempt = [] {
    rlimit limit{size_t{1} << 30, size_t{1} << 30};  // room for about a hundred stacks of 8 MiB
    setrlimit(RLIMIT_AS, &limit);
    try {
      ThreadPool pool(1000);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::exit(error.kind() == ErrorKind::kInternal ? 7 : 8);
    }
    std::exit(9);
  };
  EXPECT_EXIT(attempt(), testing::ExitedWithCode(7), "cannot start 1000 threads");
}
#endif

}  // namespace
}  // namespace orthrus
