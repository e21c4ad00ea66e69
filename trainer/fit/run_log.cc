#include "trainer/fit/run_log.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"

namespace orthrus::train {

std::string RunLog::lines_until(int64_t step) {
  std::ifstream file(path_);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto at = json.value("step", nlohmann::json(0));
    if (!at.is_number_integer() || at.get<int64_t>() > step) continue;
    kept += line + "\n";
    note(json);
  }
  return kept;
}

void RunLog::note(const nlohmann::json& line) {
  const auto event = line.value("event", nlohmann::json());
  const auto tokens_per_cycle = line.value("tokens_per_cycle", nlohmann::json());
  ended_ = ended_ || event == "end";
  if (event == "evaluation" && tokens_per_cycle.is_number()) last_evaluation_ = tokens_per_cycle;
}

RunLog::RunLog(const std::string& folder, int64_t keep_steps) : path_(folder + "/log.jsonl") {
  write_file_atomically(path_, keep_steps < 0 ? "" : lines_until(keep_steps));
  file_.open(path_, std::ios::app);
  if (!file_) fail("{}: cannot be written", path_);
}

void RunLog::write(const nlohmann::ordered_json& line) {
  file_.clear();
  file_ << line.dump() << '\n' << std::flush;
  if (!file_ && !failed_) spdlog::warn("{}: a line could not be written", path_);
  failed_ = !file_;
  note(line);
}

}  // namespace orthrus::train
