#pragma once

#include <cstdint>
#include <fstream>
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
  void write(const nlohmann::ordered_json& line);

 private:
  std::string path_;
  std::ofstream file_;
  bool ended_ = false;
  bool failed_ = false;
};

}  // namespace orthrus::train
