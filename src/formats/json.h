#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace orthrus {

/// Parses JSON from outside. Nesting deeper than `max_depth` is an error, so that neither the
/// parser nor whoever walks the result is driven into deep recursion. `where` is for messages.
nlohmann::json parse_json(std::string_view text, const std::string& where, int max_depth = 32);

/// The JSON of a file of at most `max_bytes`. Error(kInput) where missing, too large or not JSON.
nlohmann::json read_json_file(const std::string& path, size_t max_bytes);

}  // namespace orthrus
