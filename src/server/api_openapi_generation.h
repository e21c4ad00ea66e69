#pragma once

#include <string_view>

namespace orthrus {

/// The parameters that chats and completions share, as members of "properties", each followed by a
/// comma.
std::string_view openapi_generation_parameters();

}  // namespace orthrus
