#pragma once

#include <string>
#include <string_view>

namespace orthrus {

/// `text` from a file, fit for a one-line message: control and non-ASCII bytes become "?", what is
/// longer than 100 bytes is cut.
inline std::string printable(std::string_view text) {
  constexpr size_t kLimit = 100;
  std::string out(text.substr(0, kLimit));
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) c = '?';
  }
  if (text.size() > kLimit) out += "...";
  return out;
}

}  // namespace orthrus
