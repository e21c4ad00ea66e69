#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// Sets the flags of `app` that the command line left open from a YAML or JSON file. Its keys are
/// the long names of flags ("-" and "_" are the same) and the article's keys. Keys that only a
/// server uses, or another subcommand (`all_flags`: the long names of all of them), are listed in
/// one notice as without effect. An unknown key is an Error(kUsage) that names the nearest one; so
/// is a key that stands there twice, a second YAML document, and a value that the flag does not
/// take.
void apply_config_file(const std::string& path, CLI::App& app,
                       const std::vector<std::string>& all_flags);

/// The same for the text of a file; `where` names it in messages.
void apply_config(std::string_view text, const std::string& where, CLI::App& app,
                  const std::vector<std::string>& all_flags);

}  // namespace orthrus
