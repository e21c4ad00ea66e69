#include "engine/perplexity.h"

#include <optional>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/result_report.h"
#include "cli/terminal.h"
#include "engine/loaded_model.h"
#include "model/dequantize.h"

namespace orthrus {
namespace {

class PerplexityCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flag(app, flags_.model);
    add_packed_cache_flag(app, flags_);
    app.add_option("--weights", flags_.weights, "runtime format; auto keeps the file's precision")
        ->check(CLI::IsMember({"auto", "f32", "bf16", "q8", "q4"}))
        ->capture_default_str()
        ->group("Model");
    app.add_option("-t,--threads", flags_.threads, "0: all that this process may use")
        ->check(number_in(0, 1024))
        ->capture_default_str()
        ->group("Model");
    add_kv_type_flag(app, flags_.kv_type);
    app.add_option("-f,--file", file_, "the text, - for stdin")->group("Input");
    app.add_option("-c,--ctx-size,--chunk", options_.chunk,
                   "tokens a chunk; each starts with an empty context")
        ->check(number_in(2, INT32_MAX))
        ->capture_default_str();
    app.add_option("--limit", options_.max_chunks, "only the first chunks, 0: all")
        ->check(number_in(0, INT32_MAX))
        ->capture_default_str();
    app.add_flag("--kl", kl_, "mean KL against the f32 run of the same (dequantised) weights");
    app.add_flag("--json", json_, "one JSON object");
  }

  int run() override {
    require_model(flags_.model);
    if (file_.empty()) fail_usage("perplexity: which text? Name a file with -f, - for stdin");
    const std::string text = read_all(file_);
    flags_.view = "ar";
    ThreadPool pool(flags_.threads);
    const LoadedModel loaded = load(pool);
    const std::vector<int32_t> tokens = loaded.tokenizer.encode(text, true);
    std::optional<Model> reference;
    if (kl_) {
      StatusLine status("making the f32 copy");
      reference = dequantized(loaded.model, pool);
    }
    options_.reference = reference ? &*reference : nullptr;
    options_.kv_type = key_type(flags_).value_or(usual_kv_type(weight_format(flags_.weights)));
    ProgressLine progress("perplexity");
    auto options = options_;
    options.progress = [&](double share) { progress.update(share); };
    report(perplexity(loaded.model, {choose_isa(), pool}, tokens, options), loaded.weights);
    return 0;
  }

 private:
  LoadedModel load(ThreadPool& pool) const {
    LoadOptions options = load_options(flags_);
    ProgressLine progress("loading " + flags_.model);
    options.progress = [&](double share) { progress.update(share); };
    return open_model(options, pool);
  }

  void report(const PerplexityResult& result, const std::string& weights) const {
    if (json_) {
      print(dump_json(as_json(result, weights), 2) + "\n");
      return;
    }
    print(fmt::format("perplexity {:.4f} +- {:.4f} ({} tokens in {} chunks of {})\n",
                      result.perplexity, result.perplexity * result.standard_error,
                      result.scored_tokens, result.chunks, options_.chunk));
    if (!result.kl_mean) return;
    print(fmt::format(
        "f32 run of the same weights: {:.4f} ({:+.3f} %), mean KL {:.6f}, worst {:.4f} nats, same "
        "top token {:.2f} %\n",
        *result.reference_perplexity, 100 * (result.perplexity / *result.reference_perplexity - 1),
        *result.kl_mean, *result.kl_max, 100 * *result.top1_agreement));
  }

  nlohmann::ordered_json as_json(const PerplexityResult& result, const std::string& weights) const {
    nlohmann::ordered_json json = {{"perplexity", result.perplexity},
                                   {"mean_nll", result.mean_nll},
                                   {"standard_error", result.standard_error},
                                   {"tokens", result.scored_tokens},
                                   {"chunks", result.chunks},
                                   {"chunk", options_.chunk},
                                   {"weights", weights}};
    if (result.kl_mean) {
      json["reference_perplexity"] = *result.reference_perplexity;
      json["kl_mean"] = *result.kl_mean;
      json["kl_max"] = *result.kl_max;
      json["top1_agreement"] = *result.top1_agreement;
    }
    return json;
  }

  ModelFlags flags_;
  std::string file_;
  PerplexityOptions options_;
  bool kl_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_perplexity_command() { return std::make_unique<PerplexityCommand>(); }

}  // namespace orthrus
