#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace orthrus {

/// Whether a message of context["messages"] has its content in parts: a list, empty or of objects
/// with a "type".
bool has_content_parts(const nlohmann::ordered_json& context);

using RenderTemplate = std::function<std::string(const nlohmann::ordered_json& context)>;

/// The context with content in parts as the template wants it: for each role, the lists as they
/// are where the template writes the parts' texts out, else the texts joined with newlines.
/// To see that, `render` is tried with a mark for the texts of that role, all other content joined:
/// it must come out, and not as a piece of a printed list. Error(kInput) where a part is of a type
/// other than "text", which these models cannot see.
nlohmann::ordered_json fitted_parts(const nlohmann::ordered_json& context,
                                    const RenderTemplate& render);

}  // namespace orthrus
