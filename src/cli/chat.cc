#include <fmt/format.h>
#include <unistd.h>

#include <iterator>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/line_reader.h"
#include "cli/prompt.h"
#include "cli/result_report.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

constexpr const char* kHelp =
    "/reset  forget the conversation\n/stats  counters of the last answer\n/help   this list\n"
    "/exit   leave (also Ctrl-D)\nCtrl-C stops an answer; twice at the prompt it leaves. "
    "A line that ends in \\ goes on in the next.\n";

/// How to go on where a prompt leaves no room for an answer.
constexpr const char* kTooLong = " (/reset forgets the conversation and makes room)";

/// A conversation: its messages and the KV cache they were computed into.
class Chat {
 public:
  Chat(LanguageModel& model, const PromptFlags& prompt, const GenerateOptions& options)
      : model_(model),
        options_(options),
        empty_(template_request(prompt)),
        request_(empty_),
        session_(model.new_session()) {}

  void reset() {
    request_ = empty_;
    session_.reset();
    last_.reset();
  }

  /// Answers `text` and keeps both; an answer that was stopped is kept as far as it came. Where
  /// the prompt cannot be used (too long, say) the conversation stays as it was, and
  /// this is false.
  bool turn(const std::string& text) {
    const auto before = request_;
    size_t prompt_tokens = 0;
    try {
      add_message(request_, "user", text);
      InterruptGuard interrupt(/*second_ends=*/false);
      const std::vector<int32_t> prompt = encode_chat(model_, request_);
      prompt_tokens = prompt.size();
      StdoutStreamer streamer(prompt_tokens);
      last_ = model_.generate(prompt, options_, &streamer, &session_, interrupt.token());
      streamer.end_line();
      if (interrupt.interrupted()) print_stderr("(stopped)\n");
      if (last_->prompt_tokens + std::ssize(last_->token_ids) >= model_.max_seq_len()) {
        print_stderr(fmt::format("(the context of {} tokens is full: /reset makes room)\n",
                                 model_.max_seq_len()));
      }
      add_message(request_, "assistant", last_->text);
      last_sampling_ = options_.sampling;
      // Every answer draws noise of its own; the whole chat follows from the first seed.
      ++options_.sampling.seed;
      return true;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kInternal) throw;
      request_ = before;
      const bool too_long = static_cast<int64_t>(prompt_tokens) >= model_.max_seq_len();
      const bool helps = too_long && before != empty_;
      print_stderr(fmt::format("orthrus: error: {}{}\n", error.what(), helps ? kTooLong : ""));
      return false;
    }
  }

  std::string stats() const { return last_ ? stats_line(*last_, last_sampling_) : "no answer yet"; }

 private:
  LanguageModel& model_;
  GenerateOptions options_;
  const nlohmann::ordered_json empty_;
  nlohmann::ordered_json request_;
  Session session_;
  std::optional<GenerateResult> last_;
  SamplingOptions last_sampling_;
};

class ChatCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, model_flags_);
    add_template_flags(app, prompt_);
    add_generation_flags(app, generation_);
    app.add_flag("-v,--verbose", verbose_, "counters on stderr after every answer");
    app.footer(std::string("In the chat:\n") + kHelp);
  }

  int run() override {
    LanguageModel model = load_language_model(model_flags_);
    if (!model.has_chat_template()) {
      fail_usage("chat: {} has no chat template; `orthrus run --raw` goes on from any text",
                 model_flags_.model);
    }
    Chat chat(model, prompt_, generate_options(generation_, model_flags_, model));
    terminal_ = stdout_is_terminal() && ::isatty(STDIN_FILENO);
    if (terminal_) print("/help lists what can be typed beside messages.\n");
    LineReader reader;
    int64_t turns = 0, answered = 0;
    std::string text;
    while (read_message(reader, text)) {
      if (text.starts_with('/')) {
        if (!command(chat, text)) break;
      } else if (!text.empty()) {
        ++turns;
        const bool answer = chat.turn(text);
        answered += answer;
        if (verbose_ && answer) print_stderr(chat.stats() + "\n");
      }
    }
    // A script must learn that nothing came out; a person has read why.
    return !terminal_ && turns > 0 && answered == 0 ? 1 : 0;
  }

 private:
  void show_prompt(bool more) const {
    if (!terminal_) return;
    const char* mark = more ? ". " : "> ";
    print(stdout_has_colour() ? fmt::format("\x1b[1;32m{}\x1b[0m", mark) : mark);
  }

  // False at the end of the input and after two Ctrl-C in a row.
  bool read_message(LineReader& reader, std::string& message) const {
    message.clear();
    bool warned = false;
    std::string line;
    while (true) {
      show_prompt(!message.empty());
      switch (reader.read(line)) {
        case LineReader::Status::kEnd:
          if (terminal_) print("\n");
          return !message.empty();
        case LineReader::Status::kInterrupted:
          if (warned) return false;
          warned = true;
          message.clear();
          print_stderr("\n(Ctrl-C again leaves; so do /exit and Ctrl-D)\n");
          continue;
        case LineReader::Status::kLine:
          message += line;
          if (!message.ends_with('\\')) return true;
          message.back() = '\n';
      }
    }
  }

  // False for /exit.
  static bool command(Chat& chat, const std::string& text) {
    if (text == "/exit" || text == "/quit") return false;
    if (text == "/reset") {
      chat.reset();
      print("(a new conversation)\n");
    } else if (text == "/stats") {
      print(chat.stats() + "\n");
    } else if (text == "/help") {
      print(kHelp);
    } else {
      print(fmt::format("unknown: {}; /help lists what there is\n", text));
    }
    return true;
  }

  ModelFlags model_flags_;
  PromptFlags prompt_;
  GenerationFlags generation_;
  bool terminal_ = false;
  bool verbose_ = false;
};

}  // namespace

std::unique_ptr<Command> make_chat_command() { return std::make_unique<ChatCommand>(); }

}  // namespace orthrus
