#include "cli/eval_report.h"

#include <fmt/format.h>

#include <cmath>

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;
using Metrics = AcceptanceSummary::Metrics;

constexpr int kBarWidth = 40;

Json metrics_json(const Metrics& m) {
  return {{"acceptance_length", m.acceptance_length},
          {"tokens_per_cycle", m.tokens_per_cycle},
          {"tpf", m.tpf}};
}

std::string metrics_row(const char* name, const Metrics& m) {
  return fmt::format("{:<22}{:>18.3f}{:>18.3f}{:>10.3f}\n", name, m.acceptance_length,
                     m.tokens_per_cycle, m.tpf);
}

double tokens_per_second(const AcceptanceSummary& s) {
  // The first token of an answer belongs to its prefill.
  const auto decoded = static_cast<double>(s.tokens - s.prompts);
  return s.decode_seconds > 0 ? decoded / s.decode_seconds : 0;
}

}  // namespace

Json eval_json(const AcceptanceSummary& s, const EvalSettings& settings) {
  Json mean = metrics_json(s.mean);
  mean["n"] = s.mean_over;
  Json deviation = metrics_json(s.deviation);
  Json weighted = metrics_json(s.weighted);
  weighted["n"] = s.tokens;
  return {{"prompts", s.prompts},
          {"tokens", s.tokens},
          {"cycles", s.cycles},
          {"drafted", s.drafted},
          {"accepted", s.accepted},
          {"forward_passes", s.forward_passes},
          {"token_weighted", std::move(weighted)},
          {"per_prompt_mean", std::move(mean)},
          {"per_prompt_sd", std::move(deviation)},
          {"acceptance_by_position", s.acceptance},
          {"accepted_histogram", s.histogram},
          {"prefill_seconds", s.prefill_seconds},
          {"decode_seconds", s.decode_seconds},
          {"tokens_per_second", tokens_per_second(s)},
          {"settings",
           {{"model", settings.model},
            {"weights", settings.weights},
            {"draft_weights", settings.draft_weights},
            {"block", settings.block},
            {"max_new_tokens", settings.max_new_tokens}}}};
}

std::string eval_table(const AcceptanceSummary& s, const EvalSettings& settings) {
  std::string text = fmt::format(
      "{} prompts, {} tokens, {} cycles with a block of {} ({} drafts each), {:.1f} tokens/s\n\n"
      "{:<22}{:>18}{:>18}{:>10}\n",
      s.prompts, s.tokens, s.cycles, settings.block, settings.block - 1, tokens_per_second(s), "",
      "acceptance length", "tokens per cycle", "TPF");
  text += metrics_row("token-weighted", s.weighted);
  text += metrics_row(fmt::format("mean of {} prompts", s.mean_over).c_str(), s.mean);
  text += metrics_row("sd over prompts", s.deviation);
  text += fmt::format("\n{:>8}{:>12}{:>10}{:>8}\n", "drafts", "accepted >=", "exactly", "share");
  for (size_t i = 0; i < s.histogram.size(); ++i) {
    const double reached = i == 0 ? 1.0 : s.acceptance[i - 1];
    const double share =
        s.cycles > 0 ? static_cast<double>(s.histogram[i]) / static_cast<double>(s.cycles) : 0;
    const auto bar = static_cast<size_t>(std::lround(share * kBarWidth));
    text += fmt::format("{:>8}{:>11.1f}%{:>10}{:>7.1f}%{}{}\n", i, 100 * reached, s.histogram[i],
                        100 * share, bar > 0 ? " " : "", std::string(bar, '#'));
  }
  return text;
}

}  // namespace orthrus
