#pragma once

#include <string>
#include <vector>

namespace orthrus {

/// Rewrites what CLI11 does not take as llama.cpp users write it: flags of several letters behind
/// one dash (-ctk, -ctv, -ub, -sys) become their long names, and a text that starts with a dash is
/// joined to its flag (-p "-x" becomes --prompt=-x), an empty value parted from it (--prompt= is
/// --prompt ""). Nothing after "--" is touched. Error(kUsage) for words behind one dash that are no
/// flags, and for -b.
std::vector<std::string> canonical_arguments(std::vector<std::string> arguments);

}  // namespace orthrus
