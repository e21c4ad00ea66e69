#include <ATen/Parallel.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/thread_pool.h"
#include "cli/program.h"
#include "formats/printable.h"
#include "trainer/cli/commands.h"
#include "trainer/cli/launcher.h"

namespace {

using namespace orthrus;

/// libtorch by itself takes a thread for each core that the CPU reports: in a virtual machine half
/// of them or fewer.
void set_threads(int asked) {
  if (asked == 0 && std::getenv("OMP_NUM_THREADS") != nullptr) return;  // libgomp has read it
  at::set_num_threads(asked > 0 ? asked : usable_threads());
}

using Runners = std::map<std::string, train::Runner>;

void refuse_unknown_command(const Runners& runners, const std::string& name) {
  if (name.starts_with('-') || runners.contains(name)) return;
  std::vector<std::string> names;
  for (const auto& [known, runner] : runners) names.push_back(known);
  fail_usage("unknown command {}{}: `orthrus-train --help` lists them", printable(name),
             nearest_hint(name, names));
}

int run(int argc, char** argv) {
  CLI::App program("orthrus-train: a diffusion view for any base model");
  program.require_subcommand(1);
  program.fallthrough();
  program.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  int threads = 0;
  program
      .add_option("-t,--threads", threads, "0: OMP_NUM_THREADS, else all that this process may use")
      ->check(CLI::Range(0, 1024));
  Runners runners;
  runners["data"] = train::add_data_command(program);
  runners["fit"] = train::add_fit_command(program);
  runners["export"] = train::add_export_command(program);
  runners["plan"] = train::add_plan_command(program);
  runners["plot"] = train::add_plot_command(program);
  if (argc > 1) refuse_unknown_command(runners, argv[1]);
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    fail_usage("{}", error.what());
  }
  set_threads(threads);
  const std::string name = program.get_subcommands().front()->get_name();
  // Hours of work do not end because nobody reads the progress any more.
  if (name == "fit" || name == "data") std::signal(SIGPIPE, SIG_IGN);
  try {
    return runners.at(name)();
  } catch (const c10::Error& error) {
    // libtorch's own messages have several lines, the first of which says what happened.
    const std::string message = error.what_without_backtrace();
    fail("{}", message.substr(0, message.find('\n')));
  }
}

}  // namespace

int main(int argc, char** argv) {
  orthrus::train::restart_with_right_blas_kernels(argv);
  return orthrus::run_framed([&] { return run(argc, argv); });
}
