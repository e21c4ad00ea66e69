#include <exception>
#include <map>
#include <new>

#include "base/error.h"
#include "base/log.h"
#include "trainer/cli/commands.h"
#include "trainer/cli/launcher.h"

namespace {

int run(int argc, char** argv) {
  using namespace orthrus;
  CLI::App program("orthrus-train: a diffusion view for any base model");
  program.require_subcommand(1);
  std::map<std::string, train::Runner> runners;
  runners["data"] = train::add_data_command(program);
  runners["fit"] = train::add_fit_command(program);
  runners["export"] = train::add_export_command(program);
  runners["plot"] = train::add_plot_command(program);
  try {
    program.parse(argc, argv);
    return runners.at(program.get_subcommands().front()->get_name())();
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const Error& error) {
    spdlog::error("{}", error.what());
    return error.kind() == ErrorKind::kUsage ? 2 : 1;
  } catch (const std::bad_alloc&) {
    spdlog::error("not enough memory");
  } catch (const std::exception& error) {
    spdlog::error("internal error: {}", error.what());
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  orthrus::train::restart_with_right_blas_kernels(argv);
  orthrus::init_logging();
  return run(argc, argv);
}
