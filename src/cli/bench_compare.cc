#include "cli/bench_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/median.h"
#include "engine/evaluate_prompts.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

const char* const kQuestions[] = {
    "A baker makes 24 rolls an hour for 5 hours and sells 90 of them. How many rolls are left?",
    "Mia reads 18 pages on Monday and twice as many on Tuesday. The book has 120 pages. How many "
    "pages are still unread?",
    "A train ticket costs $14. A family buys 4 tickets and pays with a $100 note. How much change "
    "do they get?",
    "There are 6 boxes with 12 pencils each. A teacher hands out 3 pencils to each of 20 children. "
    "How many pencils remain?",
};

const char* const kTalk[] = {
    "What is the capital of France?",
    "Write a short story about a lighthouse keeper who finds a message in a bottle.",
    "Explain in simple words why the sky is blue.",
};

std::vector<std::vector<int32_t>> encode(const LoadedModel& model,
                                         std::span<const char* const> texts) {
  std::string lines;
  for (const char* text : texts) lines += Json{{"prompt", text}}.dump() + "\n";
  return read_prompts(model, lines, "built-in prompts", 0, false);
}

/// Interleaved pairs of one case.
class Pairs {
 public:
  Pairs(const AnswerPrompt& answer, const CompareCase& c) : answer_(answer), case_(c) {
    result_.name = c.name;
    result_.prompts = static_cast<int64_t>(c.prompts.size());
    for (const std::vector<int32_t>& prompt : c.prompts) {
      result_.prompt_tokens = std::max(result_.prompt_tokens, static_cast<int64_t>(prompt.size()));
    }
  }

  /// Both views on one prompt, in that order.
  void run(const std::vector<int32_t>& prompt, bool dual_first, std::stop_token stop) {
    GenerateResult results[2];  // AR, dual
    for (const bool dual : {dual_first, !dual_first}) {
      GenerateOptions options = case_.options;
      options.use_diffusion_mode = dual;
      results[dual] = answer_(prompt, options);
    }
    if (stop.stop_requested()) return;
    const auto seconds = [](const GenerateResult& r) {
      return r.prefill_seconds + r.decode_seconds;
    };
    ratios_.push_back(seconds(results[0]) / seconds(results[1]));
    for (size_t view = 0; view < 2; ++view) seconds_[view] += seconds(results[view]);
    result_.identical &= results[0].token_ids == results[1].token_ids;
    result_.tokens += static_cast<int64_t>(results[1].token_ids.size());
    cycles_ += results[1].cycles;
    accepted_ += results[1].accepted;
  }

  CompareResult result() {
    CompareResult r = result_;
    r.pairs = static_cast<int64_t>(ratios_.size());
    if (ratios_.empty()) return r;
    r.ratio = median(ratios_);
    r.ar_rate = static_cast<double>(result_.tokens) / seconds_[0];
    r.dual_rate = static_cast<double>(result_.tokens) / seconds_[1];
    const auto [least, most] = std::minmax_element(ratios_.begin(), ratios_.end());
    r.ratio_least = *least;
    r.ratio_most = *most;
    if (cycles_ > 0) {
      r.tokens_per_cycle = static_cast<double>(accepted_ + cycles_) / static_cast<double>(cycles_);
    }
    return r;
  }

 private:
  const AnswerPrompt& answer_;
  const CompareCase& case_;
  CompareResult result_;
  std::vector<double> ratios_;
  std::array<double, 2> seconds_{};  // AR, dual
  int64_t cycles_ = 0, accepted_ = 0;
};

}  // namespace

std::vector<CompareCase> compare_cases(const LoadedModel& model, std::vector<NamedPrompts> lists,
                                       int64_t draft_max) {
  if (lists.empty()) lists.emplace_back("maths", encode(model, kQuestions));
  const auto talk = encode(model, kTalk);
  CompareCase brief{"short", talk, {}};
  brief.options.max_new_tokens = 24;
  CompareCase sampled{"sampled", talk, {}};
  sampled.options.max_new_tokens = 96;
  sampled.options.sampling.temperature = 1.2;
  sampled.options.sampling.seed = 1;
  CompareCase lengthy{"long", talk, {}};
  lengthy.options.max_new_tokens = 400;
  lengthy.options.ignore_eos = true;
  std::vector<CompareCase> cases = {brief, sampled, lengthy};
  for (auto& [name, prompts] : lists) {
    cases.push_back({name, std::move(prompts), {}});
    cases.back().options.max_new_tokens = 160;
  }
  for (CompareCase& c : cases) c.options.draft_max = draft_max;
  return cases;
}

std::vector<CompareResult> run_compare(const AnswerPrompt& answer,
                                       const std::vector<CompareCase>& cases, int pairs,
                                       const std::function<void(double)>& progress,
                                       std::stop_token stop) {
  size_t total = 0;
  for (const CompareCase& c : cases) total += c.prompts.size() * static_cast<size_t>(pairs);
  std::vector<Pairs> runs;
  for (const CompareCase& c : cases) runs.emplace_back(answer, c);
  Pairs(answer, cases.front()).run(cases.front().prompts.front(), true, stop);  // warm-up
  size_t done = 0;
  for (int pair = 0; pair < pairs; ++pair) {
    for (size_t i = 0; i < cases.size(); ++i) {
      for (const std::vector<int32_t>& prompt : cases[i].prompts) {
        if (stop.stop_requested()) break;
        runs[i].run(prompt, done % 2 == 0, stop);
        progress(static_cast<double>(++done) / static_cast<double>(total));
      }
    }
  }
  std::vector<CompareResult> results;
  for (Pairs& run : runs) results.push_back(run.result());
  return results;
}

Json compare_json(const std::vector<CompareResult>& results) {
  Json list = Json::array();
  for (const CompareResult& r : results) {
    list.push_back({{"name", r.name},
                    {"prompts", r.prompts},
                    {"prompt_tokens", r.prompt_tokens},
                    {"pairs", r.pairs},
                    {"tokens", r.tokens},
                    {"tokens_per_cycle", r.tokens_per_cycle},
                    {"dual_tokens_per_second", r.dual_rate},
                    {"ar_tokens_per_second", r.ar_rate},
                    {"ratio_median", r.ratio},
                    {"ratio_min", r.ratio_least},
                    {"ratio_max", r.ratio_most},
                    {"identical", r.identical}});
  }
  return {{"compare", std::move(list)}};
}

std::string compare_table(const std::vector<CompareResult>& results) {
  std::string text = fmt::format("{:<10}{:>8}{:>9}{:>7}{:>9}{:>14}{:>9}{:>9}{:>11}{:>8}{:>8}  {}\n",
                                 "answers", "prompts", "longest", "pairs", "tokens", "tokens/cycle",
                                 "dual t/s", "ar t/s", "dual x ar", "min", "max", "identical");
  for (const CompareResult& r : results) {
    text += fmt::format(
        "{:<10}{:>8}{:>9}{:>7}{:>9}{:>14.2f}{:>9.1f}{:>9.1f}{:>11.3f}{:>8.3f}{:>8.3f}  {}\n",
        r.name, r.prompts, r.prompt_tokens, r.pairs, r.tokens, r.tokens_per_cycle, r.dual_rate,
        r.ar_rate, r.ratio, r.ratio_least, r.ratio_most, r.identical ? "yes" : "no");
  }
  return text;
}

}  // namespace orthrus
