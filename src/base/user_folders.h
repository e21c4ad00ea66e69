#pragma once

#include <string>

namespace orthrus {

/// $HOME, or the home directory of the user's account. Error(kInput) where there is neither.
std::string home_folder();

/// $XDG_CACHE_HOME, or ~/.cache where that is unset or not absolute.
std::string user_cache_folder();

}  // namespace orthrus
