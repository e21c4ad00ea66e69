#pragma once

#include <fmt/format.h>

#include <utility>

#include "orthrus/error.h"

namespace orthrus {

/// Throws Error(kInput): something from outside (file, request) cannot be used.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kInput, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(kUsage): a wrong flag, option or argument.
template <typename... Args>
[[noreturn]] void fail_usage(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::kUsage, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws Error(kInternal) where an internal invariant does not hold.
[[noreturn]] inline void fail_check(const char* condition, const char* file, int line) {
  throw Error(ErrorKind::kInternal,
              fmt::format("internal error: {} does not hold ({}:{})", condition, file, line));
}

/// Checked in every build. For internal invariants only, never for outside input.
#define ORTHRUS_CHECK(condition) \
  ((condition) ? void() : ::orthrus::fail_check(#condition, __FILE__, __LINE__))

}  // namespace orthrus
