#include <fmt/format.h>

#include <filesystem>

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/prompt.h"
#include "cli/result_report.h"
#include "cli/result_writer.h"
#include "cli/terminal.h"
#include "engine/prompt_lines.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

class GenerateCommand : public Command {
 public:
  void add_flags(CLI::App& app) override {
    add_model_flags(app, model_flags_);
    app.add_option(
           "input", input_,
           "JSONL, - for stdin; a line has \"token_ids\", \"messages\" (and may have \"tools\" and "
           "\"kwargs\") or \"prompt\", and may have \"max_tokens\" and \"seed\"; other keys come "
           "back with the result, but those that a result has of its own")
        ->capture_default_str()
        ->group("Input");
    app.add_option("-f,--file", input_, "the same")->group("Input");
    app.add_option("-o,--output", output_, "file of the results (default: stdout)")->group("Input");
    add_template_flags(app, prompt_);
    app.add_flag("--raw", prompt_.raw, "no chat template around prompts")->group("Input");
    app.add_option("--batch", batch_, "sequences that share passes")
        ->check(number_in(1, 1024))
        ->capture_default_str();
    add_generation_flags(app, generation_);
  }

  int run() override {
    require_model(model_flags_.model);
    std::error_code none;
    if (std::filesystem::equivalent(input_, output_, none)) {
      fail_usage("--output: {} is the input, which would be lost", printable(output_));
    }
    const std::vector<PromptLine> lines = parse_prompt_lines(read_all(input_), input_);
    LanguageModel model = load_language_model(model_flags_, batch_);
    const GenerateOptions options = generate_options(generation_, model_flags_, model);
    const RunSettings settings{model, model_flags_};
    ResultWriter writer(output_, lines);
    std::vector<BatchRequest> requests;
    std::vector<size_t> line_of;  // of each request
    for (size_t i = 0; i < lines.size(); ++i) {
      try {
        requests.push_back(make_request(model, lines[i], options));
        line_of.push_back(i);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::kInput) throw;
        writer.add_error(i, error.what());
      }
    }
    InterruptGuard interrupt;
    ProgressLine progress("generating");
    size_t finished = 0;
    auto advance = [&] {
      progress.update(static_cast<double>(++finished) / static_cast<double>(requests.size()));
    };
    model.generate_batch(
        requests,
        [&](size_t index, GenerateResult result) {
          writer.add(line_of[index], result_json(result, requests[index].options, settings));
          advance();
        },
        [&](size_t index, const std::string& message) {
          writer.add_error(line_of[index], message);
          advance();
        },
        interrupt.token());
    writer.finish();
    if (interrupt.interrupted()) return 130;
    return writer.errors() > 0 ? 1 : 0;
  }

 private:
  BatchRequest make_request(const LanguageModel& model, const PromptLine& line,
                            const GenerateOptions& options) const {
    BatchRequest request;
    request.options = options;
    if (line.max_tokens) request.options.max_new_tokens = *line.max_tokens;
    if (line.seed) request.options.sampling.seed = *line.seed;
    if (line.token_ids) {
      request.input_ids = *line.token_ids;
    } else if (line.messages || (!prompt_.raw && model.has_chat_template())) {
      auto chat = template_request(prompt_);
      if (line.prompt) add_message(chat, "user", *line.prompt);
      line.add_chat(chat);
      request.input_ids = encode_chat(model, chat);
    } else {
      request.input_ids = encode_prompt(model, prompt_, *line.prompt);
    }
    return request;
  }

  ModelFlags model_flags_;
  PromptFlags prompt_;
  GenerationFlags generation_;
  std::string input_ = "-";
  std::string output_;
  int64_t batch_ = 1;
};

}  // namespace

std::unique_ptr<Command> make_generate_command() { return std::make_unique<GenerateCommand>(); }

}  // namespace orthrus
