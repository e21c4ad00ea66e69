#include "base/error.h"
#include "cli/command.h"
#include "cli/eval_report.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/result_report.h"
#include "cli/terminal.h"
#include "engine/evaluate_prompts.h"

namespace orthrus {
namespace {

class EvalCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, flags_);
    app.add_option("--prompts", prompts_,
                   "JSONL, - for stdin; a line has token_ids, messages, question or prompt")
        ->group("Input");
    app.add_option("--limit", limit_, "only the first prompts, 0: all")
        ->check(number_in(0, INT32_MAX))
        ->capture_default_str()
        ->group("Input");
    app.add_flag("--raw", raw_, "no chat template around prompts")->group("Input");
    app.add_option("--block", options_.block,
                   "rows of every draft block, the anchor included; 0: the model's full block")
        ->check(number_in(0, 1024))
        ->capture_default_str();
    app.add_option("-n,--predict,--n-predict,--max-new-tokens", options_.max_new_tokens,
                   "most tokens of an answer")
        ->check(number_in(1, INT32_MAX))
        ->capture_default_str();
    app.add_flag("--ignore-eos", options_.ignore_eos, "go on after the end-of-sequence token");
    app.add_flag("--json", json_, "one JSON object");
  }

  int run() override {
    require_model(flags_.model);
    if (prompts_.empty()) fail_usage("eval: which prompts? Name a JSONL file with --prompts");
    if (flags_.view == "ar") fail_usage("eval measures the dual view: --view ar has no use");
    const std::string text = read_all(prompts_);
    LoadOptions load = load_options(flags_);
    ProgressLine loading("loading " + flags_.model);
    load.progress = [&](double share) { loading.update(share); };
    Generator generator(load);
    note_context(flags_, generator.max_seq_len());
    options_.block = evaluated_block(generator.loaded().model, options_.block);
    const auto prompts = read_prompts(generator.loaded(), text, prompts_, limit_, raw_);

    InterruptGuard interrupt;
    ProgressLine progress("evaluating");
    options_.done = [&](size_t i, const GenerateResult&) {
      progress.update(static_cast<double>(i + 1) / static_cast<double>(prompts.size()));
    };
    const AcceptanceSummary summary = evaluate(generator, prompts, options_, interrupt.token());
    const EvalSettings settings{flags_.model, generator.loaded().weights,
                                generator.loaded().draft_weights, options_.block,
                                options_.max_new_tokens};
    print(json_ ? dump_json(eval_json(summary, settings), 2) + "\n"
                : eval_table(summary, settings));
    return interrupt.interrupted() ? 130 : 0;
  }

 private:
  ModelFlags flags_;
  std::string prompts_;
  int64_t limit_ = 0;
  bool raw_ = false;
  EvaluateOptions options_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_eval_command() { return std::make_unique<EvalCommand>(); }

}  // namespace orthrus
