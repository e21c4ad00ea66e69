#include "trainer/fit/settings.h"

#include <filesystem>
#include <map>

#include "base/error.h"
#include "formats/json.h"
#include "trainer/data/token_hash.h"

namespace orthrus::train {

using Json = nlohmann::ordered_json;

namespace {

/// The file's or folder's own name, wherever it lies.
std::string name_of(const std::string& path) {
  const std::filesystem::path whole(path);
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

std::string hash_of(const Shard& data) {
  TokenHash hash;
  for (const Document& document : data.documents) {
    hash.add(document.tokens);
    for (const AnswerSpan& span : document.answers) {
      hash.mix(static_cast<uint64_t>(span.begin));
      hash.mix(static_cast<uint64_t>(span.end));
    }
  }
  return hash.text();
}

/// What the user knows a setting as.
std::string flag_of(const std::string& setting) {
  static const std::map<std::string, std::string> kNames = {
      {"base_hash", "--model (its hash)"},
      {"documents", "--data (documents)"},
      {"answer_tokens", "--data (answer tokens)"},
      {"data_hash", "--data (hash of its tokens)"},
      {"adapter", "--adapter"},
      {"tokens_before", "--adapter (diffusion tokens it was trained on)"},
      {"mask_token_id", "--mask-token"},
      {"precision", "--precision"},
      {"block_size", "--block"},
      {"train_last", "--train-last"},
      {"position_decay", "--position-decay"},
      {"temperature", "--temperature"},
      {"cross_entropy", "--cross-entropy"},
      {"row_tokens", "--row-tokens"},
      {"row_blocks", "--row-blocks"},
      {"step_rows", "--step-rows"},
      {"seed", "--seed"},
      {"optimizer", "--optimizer"},
      {"learning_rate", "--lr"},
      {"warmup_steps", "--warmup"},
      {"weight_decay", "--weight-decay"},
      {"clip", "--clip"},
      {"steps", "--steps"},
      {"minutes", "--minutes"}};
  const auto found = kNames.find(setting);
  return found == kNames.end() ? setting : found->second;
}

}  // namespace

Json settings_json(const FitOptions& o, const DualModel& model, const std::string& base_hash,
                   int64_t tokens_before, const Shard& data) {
  return {{"base_hash", base_hash},
          {"documents", data.documents.size()},
          {"answer_tokens", answer_tokens(data)},
          {"data_hash", hash_of(data)},
          {"adapter", name_of(o.adapter)},
          {"tokens_before", tokens_before},
          {"mask_token_id", model.config().mask_token_id},
          {"precision", model.precision() == Precision::kBfloat16 ? "bf16" : "f32"},
          {"block_size", o.student.block_size},
          {"train_last", o.student.train_last},
          {"position_decay", o.student.position_decay},
          {"temperature", o.student.loss.temperature},
          {"cross_entropy", o.student.loss.cross_entropy},
          {"row_tokens", o.plan.row_tokens},
          {"row_blocks", o.plan.row_blocks},
          {"step_rows", o.step_rows},
          {"seed", o.plan.seed},
          {"optimizer", o.student.optimizer == Optimizer::kMuon ? "muon" : "adamw"},
          {"learning_rate", o.learning_rate},
          {"warmup_steps", o.warmup_steps},
          {"beta1", o.student.adamw.beta1},
          {"beta2", o.student.adamw.beta2},
          {"weight_decay", o.student.adamw.weight_decay},
          {"clip", o.student.clip},
          {"steps", o.steps},
          {"minutes", o.steps > 0 ? 0.0 : o.minutes}};
}

void require_same_settings(const Json& ours, const std::string& text, const std::string& path) {
  nlohmann::json theirs = parse_json(text, path);
  if (!theirs.is_object()) fail("{}: its settings are no object", path);
  // Of runs that were begun by an earlier orthrus-train.
  if (!theirs.contains("optimizer")) theirs["optimizer"] = "adamw";
  if (!theirs.contains("precision")) theirs["precision"] = "f32";
  for (const char* key : {"tokens_before", "data_hash"}) {
    if (!theirs.contains(key)) theirs[key] = ours.at(key);
  }
  for (const auto& [key, value] : ours.items()) {
    if (!theirs.contains(key) || theirs[key] != nlohmann::json(value)) {
      fail_usage("{}: the run was begun with {} = {}, now it is {}", path, flag_of(key),
                 theirs.contains(key) ? theirs[key].dump() : "nothing", value.dump());
    }
  }
}

}  // namespace orthrus::train
