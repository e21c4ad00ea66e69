#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "engine/template_request.h"
#include "text/chat_template.h"

namespace orthrus {
namespace {

class TemplateCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flag(app, model_);
    app.add_option("file", file_,
                   "a JSON object {\"messages\": [...], \"tools\": [...], "
                   "\"add_generation_prompt\": true, \"kwargs\": {...}}, or the array of messages "
                   "alone; - for stdin")
        ->capture_default_str();
  }

  int run() override {
    require_model(model_);
    const std::string path = resolve_model(model_).path;
    const auto context = template_context(read_all(file_));
    const auto chat_template = ChatTemplate::load(path);
    if (!chat_template) fail("{}: the model has no chat template", path);
    print(chat_template->render(context));
    return 0;
  }

 private:
  std::string model_;
  std::string file_ = "-";
};

}  // namespace

std::unique_ptr<Command> make_template_command() { return std::make_unique<TemplateCommand>(); }

}  // namespace orthrus
