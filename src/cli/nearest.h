#pragma once

#include <span>
#include <string>
#include <string_view>

namespace orthrus {

/// The candidate with the least edit distance to `word` (insert, delete, replace, swap of
/// neighbours); "" where there is no candidate.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace orthrus
