#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/evaluate.h"

namespace orthrus {

/// What made the figures.
struct EvalSettings {
  std::string model;
  std::string weights;
  std::string draft_weights;
  int64_t block = 0;
  int64_t max_new_tokens = 0;
};

nlohmann::ordered_json eval_json(const AcceptanceSummary& summary, const EvalSettings& settings);

/// For people: the metrics token-weighted and per prompt, acceptance by position, the histogram.
std::string eval_table(const AcceptanceSummary& summary, const EvalSettings& settings);

}  // namespace orthrus
