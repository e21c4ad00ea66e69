#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus::jinja {

struct LinkStyle {
  std::string attributes;            // of a link, with the space before them
  int64_t shown = -1;                // characters of an address that its link shows; -1: all
  std::vector<std::string> schemes;  // that make links beside http, https and mailto
};

bool is_scheme(std::string_view text);
/// Escaped text with links around the web and mail addresses in it.
std::string urlize(std::string_view escaped, const LinkStyle& style);

}  // namespace orthrus::jinja
