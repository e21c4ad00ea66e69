#include "base/error.h"
#include "cli/command.h"
#include "cli/compare.h"
#include "cli/interrupt.h"
#include "cli/prompt.h"
#include "cli/result_report.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

class RunCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, model_flags_);
    add_text_flags(app, prompt_);
    add_template_flags(app, prompt_);
    app.add_flag("--raw", prompt_.raw, "no chat template around the text")->group("Input");
    add_generation_flags(app, generation_);
    app.add_flag("--json", json_, "one JSON object with text, counters and settings");
    app.add_flag("--compare", compare_, "both views one after the other, with a table");
    app.add_flag("-v,--verbose", verbose_, "counters on stderr, also where it is no terminal");
  }

  int run() override {
    require_model(model_flags_.model);
    if (compare_ && json_) fail_usage("--compare and --json exclude each other");
    if (compare_ && model_flags_.view == "ar") fail_usage("--compare needs the dual view");
    const std::string text = read_text(prompt_);
    LanguageModel model = load_language_model(model_flags_);
    if (compare_ && !model.has_diffusion_view()) {
      fail_usage("--compare: {} has no diffusion view, and no --adapter names one",
                 model_flags_.model);
    }
    const GenerateOptions options = generate_options(generation_, model_flags_, model);
    const std::vector<int32_t> prompt = encode_prompt(model, prompt_, text);
    return compare_ ? compare_views(model, prompt, options) : answer(model, prompt, options);
  }

 private:
  int answer(LanguageModel& model, const std::vector<int32_t>& prompt,
             const GenerateOptions& options) {
    InterruptGuard interrupt;
    StdoutStreamer streamer(json_ ? 0 : prompt.size());
    GenerateResult result =
        model.generate(prompt, options, json_ ? nullptr : &streamer, nullptr, interrupt.token());
    if (json_) {
      print(dump_json(result_json(result, options, {model, model_flags_})) + "\n");
    } else {
      streamer.end_line();
    }
    if (verbose_ || (!json_ && stdout_is_terminal() && stderr_is_terminal())) {
      print_stderr(stats_line(result, options.sampling) + "\n");
    }
    return interrupt.interrupted() ? 130 : 0;
  }

  ModelFlags model_flags_;
  PromptFlags prompt_;
  GenerationFlags generation_;
  bool json_ = false;
  bool compare_ = false;
  bool verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace orthrus
