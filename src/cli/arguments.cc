#include "cli/arguments.h"

#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "cli/foreign_flags.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kLongNames = {{
    {"-hf", "--hf-repo"},
    {"-hfr", "--hf-repo"},
    {"-ctk", "--cache-type-k"},
    {"-ctv", "--cache-type-v"},
    {"-np", "--parallel"},
    {"-ub", "--ubatch-size"},
    {"-sys", "--system-prompt"},
}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kTextFlags = {{
    {"-p", "--prompt"},
    {"--prompt", "--prompt"},
    {"--system-prompt", "--system-prompt"},
    {"--stop", "--stop"},
}};

std::string long_name(const std::string& argument) {
  for (const auto& [shorter, longer] : kLongNames) {
    if (argument == shorter) return std::string(longer);
    if (argument.starts_with(shorter) && argument[shorter.size()] == '=') {
      return std::string(longer) + argument.substr(shorter.size());
    }
  }
  return argument;
}

/// CLI11 would read -ngl as -n gl and -hx as --help: words behind one dash are flags of llama.cpp
/// that this program does not have.
void refuse_unknown_word(const std::string& argument) {
  const auto letter = [&](size_t i) {
    return i < argument.size() && std::isalpha(static_cast<unsigned char>(argument[i]));
  };
  if (argument.starts_with("-") && letter(1) && letter(2)) {
    refuse_foreign_flag(argument.substr(0, argument.find('=')));
    fail_usage("unknown flag {}: `orthrus COMMAND --help` lists them", printable(argument));
  }
}

/// llama.cpp's -b counts prompt tokens, the batch of this program counts sequences.
void refuse_logical_batch(const std::string& argument) {
  const auto digit = [&](size_t i) {
    return i < argument.size() && (std::isdigit(static_cast<unsigned char>(argument[i])) ||
                                   argument[i] == '=' || argument[i] == '-');
  };
  if (argument != "-b" && !(argument.starts_with("-b") && digit(2))) return;
  refuse_foreign_flag("-b");
}

}  // namespace

std::vector<std::string> canonical_arguments(std::vector<std::string> arguments) {
  std::vector<std::string> out;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") {
      out.insert(out.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
      break;
    }
    std::string argument = long_name(arguments[i]);
    refuse_logical_batch(argument);
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      argument.pop_back();  // CLI11 would take the next argument for the value
      out.push_back(std::move(argument));
      out.emplace_back();
      continue;
    }
    bool joined = false;
    for (const auto& [flag, name] : kTextFlags) {
      if (argument != flag || i + 1 == arguments.size()) continue;
      if (arguments[i + 1].size() < 2 || arguments[i + 1][0] != '-') continue;
      out.push_back(std::string(name) + "=" + arguments[++i]);
      joined = true;
      break;
    }
    if (joined) continue;
    refuse_unknown_word(argument);
    out.push_back(std::move(argument));
  }
  return out;
}

}  // namespace orthrus
