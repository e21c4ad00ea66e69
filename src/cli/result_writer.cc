#include "cli/result_writer.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "cli/result_report.h"
#include "cli/terminal.h"

namespace orthrus {
using Json = nlohmann::ordered_json;

ResultWriter::ResultWriter(const std::string& path, const std::vector<PromptLine>& lines)
    : lines_(lines), path_(path), file_(nullptr, std::fclose), waiting_(lines.size()) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "wb"));
  if (!file_) fail("{}: cannot create: {}", path, std::strerror(errno));
}

void ResultWriter::add(size_t line, const Json& result) {
  Json out = Json::object();
  for (const auto& [key, value] : lines_[line].extra.items()) {
    if (!is_result_key(key)) out[key] = value;
  }
  for (const auto& [key, value] : result.items()) out[key] = value;
  waiting_[line] = dump_json(out) + "\n";
  for (; next_ < waiting_.size() && !waiting_[next_].empty(); ++next_) {
    write(waiting_[next_]);
    waiting_[next_].clear();
  }
}

void ResultWriter::add_error(size_t line, const std::string& message) {
  ++errors_;
  add(line, {{"error", message}});
}

void ResultWriter::finish() {
  for (const std::string& text : waiting_) {
    if (!text.empty()) write(text);
  }
  if (file_ && std::fclose(file_.release()) != 0) {
    fail("{}: cannot write: {}", path_, std::strerror(errno));
  }
}

void ResultWriter::write(const std::string& text) {
  if (!file_) return print(text);
  const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size();
  if (!written || std::fflush(file_.get()) != 0) {
    fail("{}: cannot write: {}", path_, std::strerror(errno));
  }
}

}  // namespace orthrus
