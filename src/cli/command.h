#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>

namespace orthrus {

/// A subcommand of the program: `orthrus NAME flags`. One object a run.
class Command {
 public:
  virtual ~Command() = default;
  /// Adds the flags, bound to members. Called once, before parsing.
  virtual void add_flags(CLI::App& app) = 0;
  /// Does the work and returns the exit code. Errors throw Error.
  virtual int run() = 0;
};

struct CommandEntry {
  const char* name;
  const char* description;  ///< one line, for the list of commands
  std::unique_ptr<Command> (*make)();
};

/// All subcommands, in the order of the help.
std::span<const CommandEntry> commands();

std::unique_ptr<Command> make_run_command();
std::unique_ptr<Command> make_chat_command();
std::unique_ptr<Command> make_generate_command();
std::unique_ptr<Command> make_serve_command();
std::unique_ptr<Command> make_inspect_command();
std::unique_ptr<Command> make_plan_command();
std::unique_ptr<Command> make_bench_command();
std::unique_ptr<Command> make_eval_command();
std::unique_ptr<Command> make_perplexity_command();
std::unique_ptr<Command> make_tokenize_command();
std::unique_ptr<Command> make_template_command();
std::unique_ptr<Command> make_adapter_command();
std::unique_ptr<Command> make_quantize_command();
std::unique_ptr<Command> make_pull_command();
std::unique_ptr<Command> make_version_command();

}  // namespace orthrus
