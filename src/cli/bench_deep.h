#pragma once

#include <stop_token>

#include "cli/bench_compare.h"
#include "cli/bench_passes.h"
#include "decode/decoder.h"

namespace orthrus {

/// Tokens of prompt and answer together where -c says nothing.
inline constexpr int64_t kDeepContext = 12288;

/// The class "deep" of --compare: an answer that fills the last 64 of `context` tokens. For random
/// weights, and for speed alone: how many of their drafts are accepted says nothing about trained
/// ones, but what a cycle takes where keys and values are most of what it reads is the same.
/// Error(kUsage) where the model's positions end before, or where there are no tokens before the
/// answer.
CompareCase deep_case(const ModelConfig& config, int64_t context, int64_t draft_max);

/// Answers behind keys and values that are made up, like the weights: to read a prompt as long
/// takes minutes, and changes nothing about the time of what follows. All but the last token of a
/// prompt count as read.
class DeepAnswers {
 public:
  DeepAnswers(const Model& model, ComputeContext context, KvType kv_type, const MachineRates& rates,
              int64_t tokens);

  /// An AnswerPrompt; cancelled where stop is requested.
  GenerateResult answer(std::span<const int32_t> prompt, const GenerateOptions& options,
                        std::stop_token stop);

 private:
  const Model& model_;
  int64_t tokens_;
  BenchSequence sequence_;
  CostModel cost_;
  DecodeLoop loop_;
};

}  // namespace orthrus
