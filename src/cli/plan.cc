#include <fmt/format.h>

#include <algorithm>

#include "base/available_memory.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/model_size.h"
#include "cli/result_report.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

/// All bytes. `article_kv` is the article's formula: 2 x context x hidden x batch x 4 a layer,
/// which ignores that query heads share KV heads and counts 4 bytes for a bf16 value.
struct Plan {
  int64_t context = 0;
  int64_t batch = 0;
  int64_t weights = 0;
  int64_t diffusion = 0;
  int64_t kv_per_token = 0;
  int64_t kv = 0;
  int64_t article_kv = 0;
  int64_t working = 0;
  int64_t budget = 0;
  int64_t total = 0;
  int64_t most_sequences = 0;  ///< of `context` tokens each that the budget holds
  int64_t most_tokens = 0;     ///< in one sequence, at most the model's limit

  bool fits() const { return total <= budget; }
};

class PlanCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, flags_);
    app.add_option("path", path_, "the model, as with -m");
    app.add_option("--batch", batch_, "sequences at once")
        ->check(number_in(1, 1e6))
        ->capture_default_str();
    add_consensus_flag(app, consensus_);
    app.add_option("--budget", budget_gb_, "GB of memory (default: what is available here)")
        ->check(number_in(0, 1e9));
    app.add_flag("--json", json_, "as one JSON object");
    app.footer("Exit code: 0 where the plan fits the budget, 1 where it does not.");
  }

  int run() override {
    if (flags_.model.empty()) flags_.model = path_;
    const OpenedModel model = open_model_files(flags_);
    const Plan plan = make_plan(model);
    print(json_ ? dump_json(report(plan)) + "\n" : page(model, plan));
    return plan.fits() ? 0 : 1;
  }

 private:
  Plan make_plan(const OpenedModel& model) const {
    const ModelConfig& config = model.checkpoint.config;
    const ModelSize size = measure_model(model, flags_);
    const KvLayout layout = kv_layout(config, flags_);
    Plan plan;
    plan.context = context_tokens(config, flags_);
    plan.batch = batch_;
    plan.weights = size.runtime_bytes;
    plan.diffusion = size.diffusion_runtime_bytes;
    plan.kv_per_token = kv_bytes_per_token(layout);
    const int64_t one = kv_bytes(layout, plan.context);
    plan.kv = one * batch_;
    plan.article_kv = 2 * plan.context * config.hidden_size * batch_ * 4 * config.num_layers;
    plan.budget = budget_gb_ ? static_cast<int64_t>(*budget_gb_ * 1e9) : available_memory();
    plan.working = working_bytes(model, flags_, batch_, consensus_of(consensus_));
    plan.total = plan.weights + plan.kv + plan.working;
    const int64_t left = std::max<int64_t>(plan.budget - plan.weights - plan.working, 0);
    plan.most_sequences = one > 0 ? left / one : 0;
    const int64_t blocks = left / static_cast<int64_t>(layout.block_bytes());
    plan.most_tokens = std::min(blocks * kKvBlockTokens, config.max_position_embeddings);
    return plan;
  }

  nlohmann::ordered_json report(const Plan& plan) const {
    return {{"context", plan.context},
            {"batch", plan.batch},
            {"weight_bytes", plan.weights},
            {"diffusion_weight_bytes", plan.diffusion},
            {"kv_bytes_per_token", plan.kv_per_token},
            {"kv_bytes", plan.kv},
            {"article_kv_bytes", plan.article_kv},
            {"working_bytes", plan.working},
            {"total_bytes", plan.total},
            {"budget_bytes", plan.budget},
            {"fits", plan.fits()},
            {"most_sequences", plan.most_sequences},
            {"most_tokens", plan.most_tokens}};
  }

  std::string page(const OpenedModel& model, const Plan& plan) const {
    auto line = [](const std::string& what, int64_t bytes) {
      return fmt::format("{:34}{:>18}  {}\n", what, grouped(bytes),
                         human_bytes(static_cast<double>(bytes)));
    };
    const std::string shape = fmt::format("{} x {} tokens", plan.batch, plan.context);
    std::string text = fmt::format("{}: {}\n\n", model.checkpoint.config.name, shape);
    text += line(fmt::format("weights ({})", flags_.weights), plan.weights);
    text += line("  of these the diffusion view", plan.diffusion);
    text += line("KV cache", plan.kv);
    text += line("  a token", plan.kv_per_token);
    text += line("  by the article's formula", plan.article_kv);
    text += line("program and passes, at most", plan.working);
    text += line("in all", plan.total);
    text += line(budget_gb_ ? "budget" : "available here", plan.budget);
    text +=
        "\nKV cache = 2 x layers x KV heads x head_dim x bytes of the type x tokens, in blocks of "
        "64 tokens, for both views together\n(q8: head_dim + 4 bytes for a head and its "
        "scale).\nThe article's 2 x tokens x hidden x batch x 4 a "
        "layer ignores that heads share keys and values, and doubles bf16.\n\n";
    text += fmt::format("fits: {}\n", plan.fits() ? "yes" : "no");
    text +=
        fmt::format("room for {} sequences of {} tokens, or for one of {} tokens\n",
                    grouped(plan.most_sequences), grouped(plan.context), grouped(plan.most_tokens));
    return text;
  }

  ModelFlags flags_;
  std::string path_;
  int64_t batch_ = 1;
  std::string consensus_ = "exact";
  std::optional<double> budget_gb_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_plan_command() { return std::make_unique<PlanCommand>(); }

}  // namespace orthrus
