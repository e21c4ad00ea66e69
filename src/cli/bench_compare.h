#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "engine/generator.h"

namespace orthrus {

/// Answers of one kind, generated with the dual view and with plain AR in interleaved pairs.
struct CompareCase {
  std::string name;
  std::vector<std::vector<int32_t>> prompts;
  GenerateOptions options;  ///< its use_diffusion_mode is set by the run
};

struct CompareResult {
  std::string name;
  int64_t prompts = 0;
  int64_t prompt_tokens = 0;  ///< of the longest one
  int64_t pairs = 0;
  int64_t tokens = 0;                 ///< of the dual runs
  double dual_rate = 0, ar_rate = 0;  ///< tokens a second of all runs, prefill included
  double tokens_per_cycle = 0;        ///< of the dual runs
  double ratio = 0;                   ///< median over the pairs: seconds of AR over seconds of dual
  double ratio_least = 0, ratio_most = 0;
  bool identical = true;  ///< every dual answer equals its AR answer
};

/// Prompts of a file under its name.
using NamedPrompts = std::pair<std::string, std::vector<std::vector<int32_t>>>;

/// The three kinds of answers at which drafting might cost more than it gives: short ones (24
/// tokens), sampled ones (temperature 1.2) and long ones (400 tokens, past the end of sequence);
/// and a case of 160 tokens for each list of prompts, where there is none a few questions of
/// grade-school maths that are built in. `draft_max`: of all, as in GenerateOptions.
std::vector<CompareCase> compare_cases(const LoadedModel& model, std::vector<NamedPrompts> lists,
                                       int64_t draft_max);

/// Answers a prompt.
using AnswerPrompt =
    std::function<GenerateResult(std::span<const int32_t> prompt, const GenerateOptions& options)>;

/// Every prompt of every case `pairs` times, which view goes first taking turns, after a warm-up.
/// Times are prefill and decode together. progress: share done. stop: once it is requested, answers
/// of `answer` count no more.
std::vector<CompareResult> run_compare(const AnswerPrompt& answer,
                                       const std::vector<CompareCase>& cases, int pairs,
                                       const std::function<void(double)>& progress,
                                       std::stop_token stop);

nlohmann::ordered_json compare_json(const std::vector<CompareResult>& results);
std::string compare_table(const std::vector<CompareResult>& results);

}  // namespace orthrus
