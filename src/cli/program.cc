#include "cli/program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <filesystem>
#include <new>

#include "base/error.h"
#include "base/log.h"
#include "base/nearest.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/config_file.h"
#include "cli/foreign_flags.h"
#include "cli/terminal.h"
#include "cli/version.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

std::string overview() {
  std::string text =
      "orthrus: dual-view language models, byte for byte the plain autoregressive text\n\n"
      "Usage: orthrus COMMAND [FLAGS]\n\nCommands:\n";
  for (const CommandEntry& entry : commands()) {
    text += fmt::format("  {:12}{}\n", entry.name, entry.description);
  }
  return text + "\n`orthrus COMMAND --help` lists the flags of a command.\n";
}

const CommandEntry* find_command(const std::string& name) {
  for (const CommandEntry& entry : commands()) {
    if (name == entry.name) return &entry;
  }
  return nullptr;
}

[[noreturn]] void fail_unknown_command(const std::string& name) {
  if (name.starts_with('-')) {
    fail_usage("a command comes first, before {}: `orthrus --help` lists them", printable(name));
  }
  std::vector<std::string> names;
  for (const CommandEntry& entry : commands()) names.emplace_back(entry.name);
  fail_usage("unknown command {}{}: `orthrus --help` lists them", printable(name),
             nearest_hint(name, names));
}

std::vector<std::string> long_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> all_long_flags() {
  std::vector<std::string> names;
  for (const CommandEntry& entry : commands()) {
    CLI::App app;
    auto command = entry.make();
    command->add_flags(app);
    for (std::string& name : long_flags(app)) names.push_back(std::move(name));
  }
  return names;
}

// CLI11 says which arguments nobody took, the "--" that ends the flags among them; the nearest flag
// helps where it is a typing mistake.
void refuse_extras(const CLI::App& app, const char* command) {
  std::vector<std::string> extras = app.remaining();
  const auto end_of_flags = std::find(extras.begin(), extras.end(), "--");
  const bool flag = end_of_flags != extras.begin();
  if (end_of_flags != extras.end()) extras.erase(end_of_flags);
  if (extras.empty()) return;
  const std::string& first = extras.front();
  if (!flag || !first.starts_with('-')) {
    const bool model = app.get_option_no_throw("--model") != nullptr;
    fail_usage("unexpected argument {}{}", printable(first), model ? " (-m names a model)" : "");
  }
  const std::string name = first.substr(0, first.find('='));
  refuse_foreign_flag(name);
  fail_usage("unknown flag {}{}: `orthrus {} --help` lists them", printable(name),
             nearest_hint(name.substr(std::min<size_t>(2, name.size())), long_flags(app), "--"),
             command);
}

// The value of --cache-packed is optional, so it has to follow "="; nobody means a folder as the
// text to answer.
void refuse_loose_folder(const std::vector<std::string>& arguments) {
  const auto flag = std::find(arguments.begin(), arguments.end(), "--cache-packed");
  if (flag == arguments.end() || flag + 1 == arguments.end()) return;
  const std::string& value = flag[1];
  const auto begins = [&](const char* text) { return value.starts_with(text); };
  std::error_code error;
  if (value == "on" || value == "off" || begins("/") || begins("./") || begins("../") ||
      begins("~/") || std::filesystem::is_directory(value, error)) {
    fail_usage("--cache-packed {0}: expected the value behind a \"=\": --cache-packed={0}",
               printable(value));
  }
}

// An empty value is most often a shell variable that is not set: for no flag is it the same as
// leaving the flag away. A text to answer may be empty.
void refuse_empty_values(CLI::App& app) {
  const CLI::Validator not_empty(
      [](std::string& value) { return value.empty() ? "the value is empty" : std::string(); }, "");
  for (CLI::Option* option : app.get_options()) {
    const bool text = option->check_lname("prompt") || option->get_name() == "text";
    if (!text && option->get_expected_min() > 0) option->check(not_empty);
  }
}

/// Messages quote what they were given: one line, without control characters, of bounded length.
std::string one_line(std::string text) {
  constexpr size_t kLimit = 1000;
  if (text.size() > kLimit) {
    size_t end = kLimit;
    while (end > 0 && (text[end] & 0xc0) == 0x80) --end;  // no half UTF-8 character
    text = text.substr(0, end) + "...";
  }
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = byte == '\n' ? ' ' : '?';
  }
  return text;
}

int run_command(const CommandEntry& entry, std::vector<std::string> arguments) {
  CLI::App app(entry.description, fmt::format("orthrus {}", entry.name));
  app.allow_extras();
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  auto command = entry.make();
  command->add_flags(app);
  std::string config;
  app.add_option(
      "--config", config,
      "flags from a YAML or JSON file, by their long names as listed here or the keys of "
      "the article (docs/formats.md lists those); the command line wins");
  refuse_empty_values(app);
  refuse_loose_folder(arguments);
  try {
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
    app.parse(std::move(arguments));
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return 0;
  } catch (const CLI::ParseError& error) {
    fail_usage("{}: {}", entry.name, error.what());
  }
  refuse_extras(app, entry.name);
  if (!config.empty()) apply_config_file(config, app, all_long_flags());
  return command->run();
}

int dispatch(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    print(overview());
    return 2;
  }
  std::string name = arguments.front();
  arguments.erase(arguments.begin());
  if (name == "--version") {
    print(version_line() + "\n");
    return 0;
  }
  if (name == "--help" || name == "-h" || name == "help") {
    if (arguments.empty()) {
      print(overview());
      return 0;
    }
    name = arguments.front();
    arguments = {"--help"};
  }
  const CommandEntry* entry = find_command(name);
  if (!entry) fail_unknown_command(name);
  return run_command(*entry, canonical_arguments(std::move(arguments)));
}

int report(const std::string& message, int code) {
  print_stderr(fmt::format("orthrus: error: {}\n", one_line(message)));
  return code;
}

// A file that this program opens must not take the place of a stream that the parent closed. The
// null device is opened for the other direction, so that using the stream fails as before.
void occupy_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    [[maybe_unused]] int opened = ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

}  // namespace

int run_framed(const std::function<int()>& body) {
  // A reader that has gone away ends the program quietly, also where the parent ignores SIGPIPE.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over the limit is then an error of the write
  occupy_standard_streams();
  init_logging();
  try {
    return body();
  } catch (const Error& error) {
    return report(error.what(), error.kind() == ErrorKind::kUsage ? 2 : 1);
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

int run_program(int argc, const char* const* argv) {
  return run_framed([&] { return dispatch({argv + std::min(argc, 1), argv + argc}); });
}

}  // namespace orthrus
