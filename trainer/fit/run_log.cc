#include "trainer/fit/run_log.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"

namespace orthrus::train {
namespace {

/// The lines up to that step; a last line that was cut by a crash is dropped too.
std::string lines_until(const std::string& path, int64_t step, bool& ended) {
  std::ifstream file(path);
  std::string kept;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    const auto at = json.value("step", nlohmann::json(0));
    if (!at.is_number_integer() || at.get<int64_t>() > step) continue;
    kept += line + "\n";
    ended = ended || json.value("event", nlohmann::json()) == "end";
  }
  return kept;
}

}  // namespace

RunLog::RunLog(const std::string& folder, int64_t keep_steps) : path_(folder + "/log.jsonl") {
  write_file_atomically(path_, keep_steps < 0 ? "" : lines_until(path_, keep_steps, ended_));
  file_.open(path_, std::ios::app);
  if (!file_) fail("{}: cannot be written", path_);
}

void RunLog::write(const nlohmann::ordered_json& line) {
  file_.clear();
  file_ << line.dump() << '\n' << std::flush;
  if (!file_ && !failed_) spdlog::warn("{}: a line could not be written", path_);
  failed_ = !file_;
}

}  // namespace orthrus::train
