#include "trainer/data/engine_answers.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "base/child_process.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "trainer/data/torch_answers.h"

namespace orthrus::train {
namespace {

/// Removes the scratch files whatever happens, those of a killed process at the start.
struct ScratchFile {
  explicit ScratchFile(std::string name) : path(std::move(name)) { ::unlink(path.c_str()); }
  ~ScratchFile() { ::unlink(path.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  std::string path;
};

void run(const std::vector<std::string>& arguments) {
  const ChildExit end = run_child(arguments);
  if (end.start_error != 0) {
    fail("{}: cannot be started: {}", arguments[0], std::strerror(end.start_error));
  }
  if (end.signal != 0) fail("{} generate: ended by signal {}", arguments[0], end.signal);
  if (end.code != 0) fail("{} generate: failed with exit code {}", arguments[0], end.code);
}

std::string prompt_lines(std::span<const AnswerRequest> requests) {
  std::string text;
  for (size_t i = 0; i < requests.size(); ++i) {
    const AnswerRequest& request = requests[i];
    text +=
        nlohmann::json{{"index", i}, {"token_ids", request.prompt}, {"seed", request.seed}}.dump();
    text += '\n';
  }
  return text;
}

}  // namespace

void EngineAnswers::answer(std::span<const AnswerRequest> requests, const BatchOptions& batch,
                           const OnAnswer& on_answer) {
  const auto round = static_cast<size_t>(round_);
  for (size_t first = 0; first < requests.size(); first += round) {
    answer_round(
        requests.subspan(first, std::min(round, requests.size() - first)), batch,
        [&](size_t i, std::vector<int32_t> tokens) { on_answer(first + i, std::move(tokens)); });
  }
}

void EngineAnswers::answer_round(std::span<const AnswerRequest> requests, const BatchOptions& batch,
                                 const OnAnswer& on_answer) const {
  const std::string& program = options_.program;
  const ScratchFile input(scratch_ + ".prompts.jsonl"), output(scratch_ + ".answers.jsonl");
  write_file_atomically(input.path, prompt_lines(requests));
  size_t longest = 0;
  for (const AnswerRequest& request : requests) longest = std::max(longest, request.prompt.size());
  const int64_t context = static_cast<int64_t>(longest) + batch.max_tokens;
  run({program, "generate", input.path, "-o", output.path, "-m", options_.model, "--view", "ar",
       "--weights", options_.weights, "--batch", std::to_string(batch.rows), "-c",
       std::to_string(context), "-n", std::to_string(batch.max_tokens), "--temp",
       fmt::format("{}", batch.temperature)});
  std::vector<bool> answered(requests.size(), false);
  std::ifstream file(output.path);
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json json = parse_json(line, output.path);
    try {
      const auto index = json.at("index").get<size_t>();
      if (answered.at(index)) continue;
      answered[index] = true;
      ++count;
      on_answer(index, json.at("token_ids").get<std::vector<int32_t>>());
    } catch (const nlohmann::json::exception& error) {
      fail("{}: line {}: {}", output.path, count + 1, printable(error.what()));
    } catch (const std::out_of_range&) {
      fail("{}: line {}: the answer to no prompt", output.path, count + 1);
    }
  }
  if (count != requests.size()) {
    fail("{} generate: {} answers to {} prompts", program, count, requests.size());
  }
}

std::unique_ptr<Answerer> make_answerer(const GenerateOptions& options, const std::string& scratch,
                                        int64_t round) {
  if (options.backend == Backend::kTorch) return make_torch_answers(options);
  return std::make_unique<EngineAnswers>(options, scratch, round);
}

std::string default_orthrus_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / "orthrus";
  return !error && std::filesystem::exists(beside, error) ? beside.string() : "orthrus";
}

}  // namespace orthrus::train
