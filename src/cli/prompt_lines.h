#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace orthrus {

/// A line of `orthrus generate`'s input: exactly one of prompt, messages, token_ids.
struct PromptLine {
  std::optional<std::string> prompt;
  std::optional<nlohmann::ordered_json> messages;
  std::optional<std::vector<int32_t>> token_ids;
  std::optional<int64_t> max_tokens;
  std::optional<uint64_t> seed;
  nlohmann::ordered_json extra;  ///< all other keys: they come back with the result
};

/// JSONL; blank lines are skipped. Error(kInput) with `name` and the line's number where a line is
/// not as described.
std::vector<PromptLine> parse_prompt_lines(const std::string& text, const std::string& name);

/// Writes results as JSONL in the order of the input, each as soon as all before it are there.
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
