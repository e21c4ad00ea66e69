#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/options.h"

namespace orthrus {

/// What one run of a command generates with.
struct RunSettings {
  const LanguageModel& model;
  const ModelFlags& flags;
};

/// The object of `--json`: text, token ids, counters, times and the settings that made them: what
/// really ran, where a flag leaves it open or the model bounds it. Null where a setting has no
/// meaning without drafts.
nlohmann::ordered_json result_json(const GenerateResult& result, const GenerateOptions& options,
                                   const RunSettings& settings);

/// Whether a result may have this key, or "error" in its place.
bool is_result_key(const std::string& key);

/// "42 tokens, 31.5 tokens/s, 3.21 tokens per cycle, ...": one line for people.
std::string stats_line(const GenerateResult& result, const SamplingOptions& sampling);

/// Tokens a second of the decode, the first token (of the prefill) not counted.
double decode_rate(const GenerateResult& result);

/// JSON text; bytes that are no UTF-8 (a path may hold some) become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace orthrus
