#pragma once

#include <string>

namespace orthrus {

/// "orthrus 0.1.0".
std::string version_line();

}  // namespace orthrus
