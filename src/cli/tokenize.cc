#include <charconv>

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/result_report.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "text/tokenizer.h"

namespace orthrus {
namespace {

// Numbers with anything of "[], \t\n" between them.
std::vector<int32_t> parse_ids(const std::string& text) {
  constexpr std::string_view kSeparators = "[], \t\r\n";
  std::vector<int32_t> ids;
  size_t at = text.find_first_not_of(kSeparators);
  while (at != std::string::npos) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    int32_t id = 0;
    auto [stopped, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || stopped != text.data() + end || id < 0) {
      fail_usage("tokenize --ids: expected token ids, found \"{}\"", text.substr(at, end - at));
    }
    ids.push_back(id);
    at = text.find_first_not_of(kSeparators, end);
  }
  return ids;
}

std::string joined(const std::vector<int32_t>& ids) {
  std::string text;
  for (int32_t id : ids) text += (text.empty() ? "" : " ") + std::to_string(id);
  return text;
}

class TokenizeCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flag(app, model_);
    add_text_flags(app, text_);
    app.add_flag("--ids", from_ids_, "the text is token ids: print what they stand for");
    app.add_flag("--json", json_, "{\"token_ids\": [...]}, with --ids {\"text\": ...}");
  }

  int run() override {
    require_model(model_);
    const std::string text = read_text(text_, /*keep_newline=*/true);
    const std::vector<int32_t> given = from_ids_ ? parse_ids(text) : std::vector<int32_t>();
    const Tokenizer tokenizer = Tokenizer::load(resolve_model(model_).path);
    if (from_ids_) {
      const std::string decoded = tokenizer.decode(given);
      print(json_ ? dump_json({{"text", decoded}}) + "\n" : decoded + "\n");
    } else {
      const std::vector<int32_t> ids = tokenizer.encode(text);
      print((json_ ? dump_json({{"token_ids", ids}}) : joined(ids)) + "\n");
    }
    return 0;
  }

 private:
  std::string model_;
  PromptFlags text_;
  bool from_ids_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_tokenize_command() { return std::make_unique<TokenizeCommand>(); }

}  // namespace orthrus
