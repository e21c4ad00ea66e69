#include "cli/prompt_lines.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "cli/result_report.h"
#include "cli/terminal.h"
#include "formats/json.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

class LineParser {
 public:
  explicit LineParser(std::string where) : where_(std::move(where)) {}

  PromptLine parse(const std::string& text) const {
    parse_json(text, where_);               // bounds its depth; but sorts the keys, which
    const Json object = Json::parse(text);  // templates print in their own order
    if (!object.is_object())
      fail("{}: expected a JSON object, found {}", where_, object.type_name());
    PromptLine line;
    line.extra = Json::object();
    for (const auto& [key, value] : object.items()) read_key(line, key, value);
    const int sources =
        line.prompt.has_value() + line.messages.has_value() + line.token_ids.has_value();
    if (sources != 1) {
      fail("{}: expected one of \"prompt\", \"messages\" and \"token_ids\", found {}", where_,
           sources);
    }
    return line;
  }

 private:
  void read_key(PromptLine& line, const std::string& key, const Json& value) const {
    if (key == "prompt") {
      expect(value.is_string(), key, "a string");
      line.prompt = value.get<std::string>();
    } else if (key == "messages") {
      expect(value.is_array(), key, "an array");
      line.messages = value;
    } else if (key == "token_ids") {
      expect(value.is_array(), key, "an array of token ids");
      line.token_ids.emplace();
      for (const Json& id : value)
        line.token_ids->push_back(integer<int32_t>(id, key, 0, INT32_MAX));
    } else if (key == "max_tokens") {
      line.max_tokens = integer<int64_t>(value, key, -1, INT32_MAX);
    } else if (key == "seed") {
      line.seed = integer<uint64_t>(value, key, 0, INT64_MAX);
    } else {
      line.extra[key] = value;
    }
  }

  void expect(bool good, const std::string& key, const char* what) const {
    if (!good) fail("{}: \"{}\": expected {}", where_, key, what);
  }

  template <typename T>
  T integer(const Json& value, const std::string& key, int64_t least, int64_t most) const {
    const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
    const bool good = value.is_number_integer() && !huge && value.get<int64_t>() >= least &&
                      value.get<int64_t>() <= most;
    if (!good) fail("{}: \"{}\": expected a whole number from {} to {}", where_, key, least, most);
    return static_cast<T>(value.get<int64_t>());
  }

  std::string where_;
};

}  // namespace

std::vector<PromptLine> parse_prompt_lines(const std::string& text, const std::string& name) {
  std::vector<PromptLine> lines;
  size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const std::string file = name == "-" ? "stdin" : name;
    lines.push_back(LineParser(fmt::format("{}:{}", file, number)).parse(line));
  }
  return lines;
}

ResultWriter::ResultWriter(const std::string& path, const std::vector<PromptLine>& lines)
    : lines_(lines), path_(path), file_(nullptr, std::fclose), waiting_(lines.size()) {
  if (path.empty()) return;
  file_.reset(std::fopen(path.c_str(), "wb"));
  if (!file_) fail("{}: cannot create: {}", path, std::strerror(errno));
}

void ResultWriter::add(size_t line, const Json& result) {
  Json out = lines_[line].extra;
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
