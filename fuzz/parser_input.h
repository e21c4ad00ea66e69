#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string_view>

#include "orthrus/error.h"

namespace orthrus::fuzz {

inline std::span<const std::byte> as_bytes(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs `parse`, which may refuse its input with Error(kInput) or Error(kUsage) of one line;
/// anything else is a finding.
template <typename Parse>
int run_parser(Parse&& parse) {
  try {
    parse();
  } catch (const Error& error) {
    const std::string_view text = error.what();
    const bool one_line = text.find('\n') == std::string_view::npos && text.size() < 4096;
    if (error.kind() == ErrorKind::kInternal || !one_line) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
  }
  return 0;
}

}  // namespace orthrus::fuzz
