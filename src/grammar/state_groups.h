#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grammar/grammar.h"

namespace orthrus::grammar {

/// A number for each state; states with the same number read the same texts of up to `length`
/// bytes, and may end at the same places of them. So the thousand states that count the characters
/// of a string of at most 1,000 have a common number but for the last ones. (States that are the
/// same by this measure need not get the same number.) Error(kUsage) where finding out is too much
/// work.
std::vector<uint32_t> state_groups(const Grammar& grammar, size_t length);

}  // namespace orthrus::grammar
