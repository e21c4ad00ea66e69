#include "cli/bench_deep.h"

#include "base/error.h"

namespace orthrus {
namespace {

constexpr int64_t kAnswerTokens = 64;

}  // namespace

CompareCase deep_case(const ModelConfig& config, int64_t context, int64_t draft_max) {
  if (context > config.max_position_embeddings) {
    fail_usage("bench: {} has positions for {} tokens, found {} to compare at (-c)", config.name,
               config.max_position_embeddings, context);
  }
  if (context <= kAnswerTokens) {
    fail_usage("bench: expected more than the {} tokens of the answer, found {} (-c)",
               kAnswerTokens, context);
  }
  CompareCase deep{
      "deep", {std::vector<int32_t>(static_cast<size_t>(context - kAnswerTokens))}, {}};
  deep.options.max_new_tokens = kAnswerTokens;
  deep.options.ignore_eos = true;
  deep.options.draft_max = draft_max;
  return deep;
}

DeepAnswers::DeepAnswers(const Model& model, ComputeContext context, KvType kv_type,
                         const MachineRates& rates, int64_t tokens)
    : model_(model),
      tokens_(tokens),
      sequence_(model, context, kv_type, tokens, model.config.block_size),
      cost_(model, sequence_.layout(), rates),
      loop_(sequence_.forward(), cost_) {}

GenerateResult DeepAnswers::answer(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   std::stop_token stop) {
  sequence_.table().set_length(reusable_prompt(static_cast<int64_t>(prompt.size()), options));
  Decoder decoder(Decoder::Setup{.model = &model_,
                                 .table = &sequence_.table(),
                                 .prompt = prompt,
                                 .options = &options,
                                 .eos_token_ids = model_.config.eos_token_ids,
                                 .max_seq_len = tokens_,
                                 .prefill_chunk = model_.config.block_size,
                                 .cost = &cost_,
                                 .sink = nullptr,
                                 .isa = sequence_.isa()});
  Decoder* const decoders[] = {&decoder};
  DecodeLoop::Times times;
  while (!decoder.finished()) {
    if (stop.stop_requested()) decoder.cancel();
    if (!loop_.step(decoders, {&times, 1})) break;
  }
  GenerateResult result = decoder.result();
  result.prefill_seconds = times.prefill_seconds;
  result.decode_seconds = times.decode_seconds;
  return result;
}

}  // namespace orthrus
