#pragma once

#include <string>
#include <vector>

namespace orthrus {

/// Runs a program found in PATH with these arguments, no shell in between, and waits for it. Its
/// stdout goes to our stderr. Returns its exit code, 128 + signal where one ended it, 127 where
/// there is no such program.
int run_child(const std::vector<std::string>& arguments);

}  // namespace orthrus
