#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>

#include "base/available_memory.h"
#include "base/error.h"
#include "cli/bench_compare.h"
#include "cli/bench_deep.h"
#include "cli/bench_report.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/result_report.h"
#include "cli/terminal.h"
#include "engine/draft_weights.h"
#include "engine/evaluate_prompts.h"
#include "engine/machine_cache.h"
#include "engine/shapes.h"

namespace orthrus {
namespace {

constexpr double kProbeSeconds = 0.7;  // of arithmetic, in every probe of the machine

class BenchCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flag(app, flags_.model);
    app.add_option("--shape", shape_, "random weights in the shape of " + shape_names())
        ->group("Model");
    app.add_option("--adapter", flags_.adapter, "diffusion weights: a path, or \"copy\"")
        ->group("Model");
    app.add_option("--weights", flags_.weights,
                   "runtime format (auto: the file's, bf16 for shapes)")
        ->check(CLI::IsMember({"auto", "f32", "bf16", "q8", "q4"}))
        ->capture_default_str()
        ->group("Model");
    add_draft_flags(app, flags_);
    add_kv_type_flag(app, flags_.kv_type);
    add_packed_cache_flag(app, flags_);
    app.add_option("-t,--threads", flags_.threads, "0: all that this process may use")
        ->check(number_in(0, 1024))
        ->capture_default_str()
        ->group("Model");
    app.add_option("--reps", reps_, "repetitions of every case, or pairs a prompt of --compare")
        ->check(number_in(1, 1000))
        ->capture_default_str();
    app.add_option(
           "--cases", cases_,
           "only these, with commas between: rows (matrix products of 1 to 64 rows), decode "
           "(one-row steps), prefill, attention (alone), other (a step "
           "without products and attention), dual (a cycle of draft and check), cycle "
           "(what a whole cycle takes beyond those two passes)")
        ->delimiter(',')
        ->check(CLI::IsMember(bench_case_names()));
    app.add_option(
           "--compare", compare_,
           "takes ar,dual: instead of the cases, whole answers of both views in interleaved "
           "pairs; lists for short, sampled, long and maths answers the tokens, tokens a "
           "cycle, the ratio of their times and whether the texts are identical; with --shape for "
           "deep ones: 64 tokens behind a long context that is made up, for speed alone")
        ->check(CLI::Validator(
            [](std::string& value) {
              const bool good = value == "ar,dual" || value == "dual,ar";
              return good ? std::string() : "expected ar,dual, found " + value;
            },
            "ar,dual"));
    app.add_option("-c,--ctx-size,--max-seq-len,--max-model-len", flags_.context,
                   fmt::format("tokens: before the cases at a long context ({}), or of prompt and "
                               "answer of --compare together ({}; with --shape {})",
                               kBenchLongContext, kDefaultContext, kDeepContext))
        ->check(number_in(1, INT32_MAX));
    app.add_option("--prompts", prompts_,
                   "JSONL of prompts for --compare in place of the maths questions, - for stdin; "
                   "several files are a case each");
    add_draft_max_flag(app, draft_max_);
    app.add_option("--limit", limit_, "most prompts of a file, 0: all")
        ->check(number_in(0, INT32_MAX))
        ->capture_default_str();
    app.add_flag("--json", json_, "one JSON object");
  }

  int run() override {
    if (flags_.model.empty() == shape_.empty()) {
      fail_usage("bench: name a model with -m, or a shape of random weights with --shape");
    }
    if (limit_ > 0 && prompts_.empty()) fail_usage("bench: --limit belongs to --prompts");
    if (compare_.empty()) {
      if (!prompts_.empty()) fail_usage("bench: --prompts belongs to --compare");
      if (draft_max_ != "auto") fail_usage("bench: --draft-max belongs to --compare");
      return measure();
    }
    if (!cases_.empty()) fail_usage("bench: --cases has no use with --compare");
    if (shape_.empty()) return compare();
    if (!prompts_.empty()) fail_usage("bench: --prompts needs a model (-m), not a shape");
    return compare_deep();
  }

 private:
  int measure() {
    ThreadPool pool(flags_.threads);
    const ComputeContext context{choose_isa(), pool};
    const auto [model, draft_weights] = open(pool);
    const int64_t long_context = flags_.context.value_or(kBenchLongContext);
    const int64_t limit = model.config.max_position_embeddings;
    if (flags_.context && long_context >= limit) {
      fail_usage("bench: {} has positions for {} tokens, found {} before a pass (-c)",
                 model.config.name, limit, long_context);
    }
    MatmulPass matmul(model, context, kBenchMatmulRows);
    BenchSequence sequence(model, context, kv_cache_type(),
                           bench_cache_tokens(model.config, long_context), kBenchMaxRows);
    const std::vector<BenchCase> cases = bench_cases(model, matmul, sequence, cases_, long_context);
    if (cases.empty()) fail("bench: the model has nothing to measure for --cases");

    BenchReport report;
    report.model = model.config.name;
    report.weights = weights_name(model, weight_format(flags_.weights));
    report.draft_weights = draft_weights;
    report.kv_type = kv_type_name(kv_cache_type());
    report.reps = reps_;
    ProgressLine progress("measuring");
    const MachineProbe probe(context);
    report.run = run_bench(
        cases, reps_, [&] { return probe.measure(kProbeSeconds); },
        [&](double share) { progress.update(share); });
    print(json_ ? dump_json(bench_json(report), 2) + "\n" : bench_table(report));
    for (const std::string& warning : bench_warnings(report)) spdlog::warn("{}", warning);
    return 0;
  }

  int compare() {
    LoadOptions options = load_options(flags_);
    ProgressLine loading("loading " + flags_.model);
    options.progress = [&](double share) { loading.update(share); };
    Generator generator(options);
    const LoadedModel& loaded = generator.loaded();
    if (!loaded.model.has_diffusion()) {
      fail_usage("bench --compare: {} has no diffusion view, and no --adapter names one",
                 flags_.model);
    }
    std::vector<NamedPrompts> lists;
    for (const std::string& file : prompts_) {
      lists.emplace_back(std::filesystem::path(file).stem().string(),
                         read_prompts(loaded, read_all(file), file, limit_, false));
    }
    InterruptGuard interrupt;
    const auto answer = [&](std::span<const int32_t> prompt, const GenerateOptions& generation) {
      return generator.generate(prompt, generation, nullptr, nullptr, interrupt.token());
    };
    return compare(answer, compare_cases(loaded, std::move(lists), parse_draft_max(draft_max_)),
                   interrupt);
  }

  int compare_deep() {
    const ModelConfig config = named_shape(shape_);
    const int64_t tokens =
        flags_.context.value_or(std::min(kDeepContext, config.max_position_embeddings));
    const CompareCase deep = deep_case(config, tokens, parse_draft_max(draft_max_));
    ThreadPool pool(flags_.threads);
    const ComputeContext context{choose_isa(), pool};
    const MachineRates rates = machine_rates(context);
    const Model model = open(pool).model;
    DeepAnswers answers(model, context, kv_cache_type(), rates, tokens);
    InterruptGuard interrupt;
    const auto answer = [&](std::span<const int32_t> prompt, const GenerateOptions& generation) {
      return answers.answer(prompt, generation, interrupt.token());
    };
    return compare(answer, {deep}, interrupt);
  }

  int compare(const AnswerPrompt& answer, const std::vector<CompareCase>& cases,
              InterruptGuard& interrupt) {
    ProgressLine progress("comparing");
    const auto results = run_compare(
        answer, cases, reps_, [&](double share) { progress.update(share); }, interrupt.token());
    print(json_ ? dump_json(compare_json(results), 2) + "\n" : compare_table(results));
    if (interrupt.interrupted()) return 130;
    const auto differs = [](const CompareResult& r) { return !r.identical; };
    return std::any_of(results.begin(), results.end(), differs) ? 1 : 0;
  }

  KvType kv_cache_type() const {
    return key_type(flags_).value_or(usual_kv_type(weight_format(flags_.weights)));
  }

  struct Opened {
    Model model;
    std::string draft_weights;
  };
  Opened open(ThreadPool& pool) const {
    if (shape_.empty()) return load(pool);
    if (!flags_.adapter.empty()) fail_usage("bench: --adapter has no use with --shape");
    if (!flags_.packed_cache.empty()) {
      fail_usage("bench: --cache-packed has no use with --shape");
    }
    WeightFormat format = weight_format(flags_.weights);
    if (format == WeightFormat::kAuto) format = WeightFormat::kBF16;
    StatusLine status("making random weights");
    const Checkpoint planned = shape_checkpoint(named_shape(shape_));
    const DraftWeights wish = draft_weights(flags_.draft_weights);
    const MachineRates rates =
        wish == DraftWeights::kAuto ? machine_rates({choose_isa(), pool}) : MachineRates{};
    const std::optional<WeightFormat> draft = choose_draft_format(
        wish, planned, planned.tensors.get(), format, rates, available_memory());
    Model model = random_model(planned.config, format, pool, draft);
    limit_draft_vocab(model, flags_.draft_vocab);
    return {std::move(model), draft_weights_name(draft)};
  }

  Opened load(ThreadPool& pool) const {
    LoadOptions options = load_options(flags_);
    ProgressLine progress("loading " + flags_.model);
    options.progress = [&](double share) { progress.update(share); };
    LoadedModel loaded = open_model(options, pool);
    return {std::move(loaded.model), std::move(loaded.draft_weights)};
  }

  ModelFlags flags_;
  std::string shape_;
  int reps_ = 7;
  std::vector<std::string> cases_;
  std::string compare_;
  std::vector<std::string> prompts_;
  std::string draft_max_ = "auto";
  int64_t limit_ = 0;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace orthrus
