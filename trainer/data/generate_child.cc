#include "trainer/data/generate_child.h"

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/atomic_file.h"
#include "base/child_process.h"
#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"

namespace orthrus::train {
namespace {

/// Removes the scratch files whatever happens.
struct ScratchFile {
  explicit ScratchFile(std::string name) : path(std::move(name)) {}
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

std::string prompt_lines(const std::vector<std::vector<int32_t>>& prompts, uint64_t seed) {
  std::string text;
  for (size_t i = 0; i < prompts.size(); ++i) {
    text += nlohmann::json{{"index", i}, {"token_ids", prompts[i]}, {"seed", seed + i}}.dump();
    text += '\n';
  }
  return text;
}

}  // namespace

std::vector<std::vector<int32_t>> generate_answers(const std::vector<std::vector<int32_t>>& prompts,
                                                   const GenerateOptions& options,
                                                   const std::string& scratch) {
  const ScratchFile input(scratch + ".prompts.jsonl"), output(scratch + ".answers.jsonl");
  write_file_atomically(input.path, prompt_lines(prompts, options.seed));
  run({options.program, "generate", input.path, "-o", output.path, "-m", options.model, "--view",
       "ar", "--weights", options.weights, "--batch", std::to_string(options.batch), "-n",
       std::to_string(options.max_tokens), "--temp", fmt::format("{}", options.temperature)});
  std::vector<std::vector<int32_t>> answers(prompts.size());
  std::ifstream file(output.path);
  size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const nlohmann::json json = parse_json(line, output.path);
    if (json.contains("error")) {
      fail("{} generate: {}", options.program, printable(json["error"].dump()));
    }
    try {
      answers.at(json.at("index").get<size_t>()) = json.at("token_ids").get<std::vector<int32_t>>();
    } catch (const std::exception& error) {
      fail("{}: line {}: {}", output.path, count + 1, printable(error.what()));
    }
  }
  if (count != prompts.size()) {
    fail("{} generate: {} answers to {} prompts", options.program, count, prompts.size());
  }
  return answers;
}

std::string default_orthrus_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path beside = self.parent_path() / "orthrus";
  return !error && std::filesystem::exists(beside, error) ? beside.string() : "orthrus";
}

}  // namespace orthrus::train
