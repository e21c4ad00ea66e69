#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace orthrus::train {

/// The log of a run: folder/log.jsonl, one JSON object a line, flushed at once. A line that cannot
/// be written (full disk) is reported once and does not end the run.
class RunLog {
 public:
  /// `keep_steps`: lines of later steps are dropped, so that a resumed run continues the log where
  /// its checkpoint stands. -1: begin a new log.
  RunLog(const std::string& folder, int64_t keep_steps);

  /// Whether one of the lines that were kept says that the run has ended.
  bool has_ended() const { return ended_; }
  /// Tokens per cycle of the last evaluation, kept or written since; NaN where there is none.
  double last_evaluation() const { return last_evaluation_; }
  void write(const nlohmann::ordered_json& line);

 private:
  /// The lines up to that step; a last line that was cut by a crash is dropped too.
  std::string lines_until(int64_t step);
  void note(const nlohmann::json& line);

  std::string path_;
  std::ofstream file_;
  bool ended_ = false;
  double last_evaluation_ = std::numeric_limits<double>::quiet_NaN();
  bool failed_ = false;
};

}  // namespace orthrus::train
