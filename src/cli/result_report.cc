#include "cli/result_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "cli/terminal.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

// JSON has no infinity; a ban is the string that the flag takes.
Json bias_json(const SamplingOptions& sampling) {
  Json list = Json::array();
  for (const auto& [token, bias] : sampling.logit_bias) {
    list.push_back({token, std::isinf(bias) ? Json("-inf") : Json(bias)});
  }
  return list;
}

// Most drafts a cycle, as the decoder has them.
Json draft_max_json(const GenerateOptions& options, const ModelInfo& info) {
  if (!options.use_diffusion_mode) return nullptr;
  const int64_t full = info.block_size - 1;
  if (options.draft_max >= 0) return std::min(options.draft_max, full);
  return options.consensus == Consensus::kExact ? Json("auto") : Json(full);
}

Json settings_json(const GenerateResult& result, const GenerateOptions& options,
                   const RunSettings& settings) {
  const SamplingOptions& sampling = options.sampling;
  const ModelFlags& flags = settings.flags;
  const LanguageModel& model = settings.model;
  const ModelInfo info = model.info();
  const bool dual = options.use_diffusion_mode;
  const int64_t room = model.max_seq_len() - result.prompt_tokens;
  const int64_t max_tokens =
      options.max_new_tokens < 0 ? room : std::min(options.max_new_tokens, room);
  return {{"model", flags.model},
          {"path", info.path},
          {"adapter", info.diffusion_source},
          {"view", dual ? "dual" : "ar"},
          {"weights", info.weights},
          {"draft_weights", dual ? Json(info.draft_weights) : Json()},
          {"draft_vocab", dual ? Json(info.draft_vocab) : Json()},
          {"cache_type_k", kv_type_name(info.key_type)},
          {"cache_type_v", kv_type_name(info.value_type)},
          {"isa", info.isa},
          {"threads", info.threads},
          {"ctx_size", model.max_seq_len()},
          {"ubatch_size", std::min(flags.ubatch, model.max_seq_len())},
          {"max_tokens", max_tokens},
          {"draft_max", draft_max_json(options, info)},
          {"consensus", dual ? Json(consensus_name(options.consensus)) : Json()},
          {"consensus_threshold", dual ? Json(options.consensus_threshold) : Json()},
          {"seed", sampling.seed},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_penalty", sampling.repeat_penalty},
          {"repeat_last_n", sampling.repeat_last_n},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"logit_bias", bias_json(sampling)},
          {"stop", options.stop},
          {"ignore_eos", options.ignore_eos}};
}

}  // namespace

Json result_json(const GenerateResult& result, const GenerateOptions& options,
                 const RunSettings& settings) {
  Json report = {{"text", result.text},
                 {"token_ids", result.token_ids},
                 {"finish_reason", finish_reason_name(result.finish_reason)},
                 {"prompt_tokens", result.prompt_tokens},
                 {"completion_tokens", result.token_ids.size()},
                 {"cycles", result.cycles},
                 {"drafted", result.drafted},
                 {"accepted", result.accepted},
                 {"forward_passes", result.forward_passes},
                 {"tokens_per_cycle", result.tokens_per_cycle()},
                 {"tpf", result.tpf()}};
  if (result.kl_mean) report["kl_mean"] = *result.kl_mean;
  if (result.conflict_rate) report["conflict_rate"] = *result.conflict_rate;
  report["prefill_seconds"] = result.prefill_seconds;
  report["decode_seconds"] = result.decode_seconds;
  report["kv_bytes"] = result.kv_bytes;
  report["settings"] = settings_json(result, options, settings);
  return report;
}

bool is_result_key(const std::string& key) {
  static constexpr std::string_view kKeys[] = {"text",
                                               "token_ids",
                                               "finish_reason",
                                               "prompt_tokens",
                                               "cycles",
                                               "drafted",
                                               "accepted",
                                               "completion_tokens",
                                               "forward_passes",
                                               "tokens_per_cycle",
                                               "tpf",
                                               "kl_mean",
                                               "conflict_rate",
                                               "prefill_seconds",
                                               "decode_seconds",
                                               "kv_bytes",
                                               "settings",
                                               "error"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

double decode_rate(const GenerateResult& result) {
  if (result.decode_seconds <= 0 || result.token_ids.empty()) return 0;
  return static_cast<double>(result.token_ids.size() - 1) / result.decode_seconds;
}

std::string stats_line(const GenerateResult& result, const SamplingOptions& sampling) {
  std::string line = fmt::format(
      "{} tokens, {:.1f} tokens/s, {:.2f} tokens per cycle, TPF {:.2f}; prompt {} tokens ({} "
      "cached) "
      "in {:.2f} s; KV {}",
      result.token_ids.size(), decode_rate(result), result.tokens_per_cycle(), result.tpf(),
      result.prompt_tokens, result.cached_tokens, result.prefill_seconds,
      human_bytes(static_cast<double>(result.kv_bytes)));
  if (result.kl_mean) line += fmt::format("; mean KL {:.4f}", *result.kl_mean);
  if (result.conflict_rate)
    line += fmt::format("; conflicts {:.2f} %", 100 * *result.conflict_rate);
  if (sampling.temperature > 0) line += fmt::format("; seed {}", sampling.seed);
  return line;
}

std::string dump_json(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace orthrus
