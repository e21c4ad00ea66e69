#pragma once

#include <string>
#include <string_view>

namespace orthrus {

/// What to do instead of a flag ("-ngl", "--gpu-layers") that llama.cpp or vLLM has and this
/// program has not; "" for any other. For flags that the command at hand does not know.
std::string_view foreign_flag_hint(std::string_view flag);

/// Error(kUsage) with that hint; returns where there is none.
void refuse_foreign_flag(std::string_view flag);

}  // namespace orthrus
