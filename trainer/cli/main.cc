#include <ATen/Parallel.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <new>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_pool.h"
#include "formats/printable.h"
#include "trainer/cli/commands.h"
#include "trainer/cli/launcher.h"

namespace {

/// libtorch by itself takes a thread for each core that the CPU reports: in a virtual machine half
/// of them or fewer.
void set_threads(int asked) {
  if (asked == 0 && std::getenv("OMP_NUM_THREADS") != nullptr) return;  // libgomp has read it
  at::set_num_threads(asked > 0 ? asked : orthrus::usable_threads());
}

/// In one line; libtorch's own messages have several, the first of which says what happened.
int report(const std::string& message, int code) {
  spdlog::error("{}", orthrus::printable(message.substr(0, message.find('\n'))));
  return code;
}

int run(int argc, char** argv) {
  using namespace orthrus;
  CLI::App program("orthrus-train: a diffusion view for any base model");
  program.require_subcommand(1);
  program.fallthrough();
  int threads = 0;
  program
      .add_option("-t,--threads", threads, "0: OMP_NUM_THREADS, else all that this process may use")
      ->check(CLI::Range(0, 1024));
  std::map<std::string, train::Runner> runners;
  runners["data"] = train::add_data_command(program);
  runners["fit"] = train::add_fit_command(program);
  runners["export"] = train::add_export_command(program);
  runners["plan"] = train::add_plan_command(program);
  runners["plot"] = train::add_plot_command(program);
  try {
    program.parse(argc, argv);
    set_threads(threads);
    return runners.at(program.get_subcommands().front()->get_name())();
  } catch (const CLI::Success& help) {
    return program.exit(help);
  } catch (const CLI::ParseError& error) {
    return report(error.what(), 2);
  } catch (const Error& error) {
    return report(error.what(), error.kind() == ErrorKind::kUsage ? 2 : 1);
  } catch (const c10::Error& error) {
    return report(error.what_without_backtrace(), 1);
  } catch (const std::bad_alloc&) {
    return report("out of memory", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  orthrus::train::restart_with_right_blas_kernels(argv);
  orthrus::init_logging();
  return run(argc, argv);
}
