#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>

namespace orthrus::train {

using Words = std::map<std::string, std::string>;

/// A key of a record and what the user knows it as: a flag of `data`.
using NamedKey = std::pair<const char*, const char*>;

/// The keys whose words differ: "--max-tokens 6, now 7; --seed 0, now 1". Empty where none does.
std::string differences(std::span<const NamedKey> keys, const Words& made, const Words& asked);

/// What differs between the provenance of a shard that is there and that of the shards asked for,
/// in the names of flags. Empty where they are the same.
std::string provenance_difference(const Words& made, const Words& asked);

/// The first digits of a base's hash, enough to tell two apart in a message.
std::string short_hash(const std::string& hash);

}  // namespace orthrus::train
