#include "cli/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "kernels/isa.h"

namespace orthrus {
namespace {

#if defined(__clang__)
constexpr const char* kCompiler = "clang " __clang_version__;
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

class VersionCommand : public Command {
 public:
  void add_flags(CLI::App& app) override { app.add_flag("--json", json_, "as one JSON object"); }

  int run() override {
    std::vector<std::string> supported;
    for (Isa isa : kIsas) {
      if (isa_supported(isa)) supported.emplace_back(isa_name(isa));
    }
    const std::string chosen(isa_name(choose_isa()));
    if (json_) {
      nlohmann::ordered_json report = {{"version", ORTHRUS_VERSION},
                                       {"compiler", kCompiler},
                                       {"isa", chosen},
                                       {"isa_supported", supported},
                                       {"model_folders", model_folders()}};
      print(report.dump() + "\n");
      return 0;
    }
    std::string list;
    for (const std::string& name : supported) list += " " + name;
    print(fmt::format(
        "{}\ncompiler: {}\ninstruction sets here:{} (in use: {})\nadapters of known models: {}\n",
        version_line(), kCompiler, list, chosen, fmt::join(model_folders(), ", ")));
    return 0;
  }

 private:
  bool json_ = false;
};

}  // namespace

std::string version_number() { return ORTHRUS_VERSION; }

std::string version_line() { return "orthrus " + version_number(); }

std::unique_ptr<Command> make_version_command() { return std::make_unique<VersionCommand>(); }

}  // namespace orthrus
