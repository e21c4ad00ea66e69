#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace orthrus {

/// Sets the default floating-point environment (round to nearest, no flush-to-zero, no traps) on
/// this thread and restores what was there when it goes out of scope. docs/numerics.md, rule 2.
class FpStateGuard {
 public:
#if defined(__x86_64__)
  FpStateGuard() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FpStateGuard() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FpStateGuard() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(uint64_t{0}));
  }
  ~FpStateGuard() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#endif
  FpStateGuard(const FpStateGuard&) = delete;
  FpStateGuard& operator=(const FpStateGuard&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr uint32_t kDefault = 0x1f80;  // all exceptions masked, nothing else set
  uint32_t saved_;
#elif defined(__aarch64__)
  uint64_t saved_;
#endif
};

}  // namespace orthrus
