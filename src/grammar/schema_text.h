#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace orthrus::grammar {

/// The text of a JSON schema, parsed. Error(kUsage), begun with `what`, where it is not JSON or
/// nested deeper than 200 levels.
nlohmann::ordered_json parse_schema_text(std::string_view text, const std::string& what);

/// Bytes of the JSON object that `text` begins with, by its brackets; 0 where it does not end.
size_t json_object_bytes(std::string_view text);

}  // namespace orthrus::grammar
