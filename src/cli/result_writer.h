#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/prompt_lines.h"

namespace orthrus {

/// Writes results as JSONL in the order of the input, each as soon as all before it are there. The
/// caller's other keys come first; one that a result may have too is dropped, also where this one
/// lacks it, so that whoever reads "error" or "kl_mean" reads what happened here.
class ResultWriter {
 public:
  /// path: "" for stdout. `lines` must outlive this.
  ResultWriter(const std::string& path, const std::vector<PromptLine>& lines);

  void add(size_t line, const nlohmann::ordered_json& result);
  /// A line that could not run: {"error": message}.
  void add_error(size_t line, const std::string& message);
  /// Writes what an interrupt left waiting, and closes the file.
  void finish();
  int64_t errors() const { return errors_; }

 private:
  void write(const std::string& text);

  const std::vector<PromptLine>& lines_;
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  std::vector<std::string> waiting_;  // of each line
  size_t next_ = 0;
  int64_t errors_ = 0;
};

}  // namespace orthrus
