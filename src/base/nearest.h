#pragma once

#include <span>
#include <string>
#include <string_view>

namespace orthrus {

/// The candidate with the least edit distance to `word` (insert, delete, replace, swap of
/// neighbours), where that is at most a third of the longer one's length; else "".
std::string nearest(std::string_view word, std::span<const std::string> candidates);

/// For messages about an unknown word: " (the nearest is PREFIXcandidate)", or "" where none is
/// near.
std::string nearest_hint(std::string_view word, std::span<const std::string> candidates,
                         std::string_view prefix = "");

}  // namespace orthrus
