#pragma once

#include <string>

namespace orthrus {

/// "0.1.0"
std::string version_number();
/// "orthrus 0.1.0".
std::string version_line();

}  // namespace orthrus
