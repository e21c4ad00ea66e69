#include "trainer/data/generate_child.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "trainer/data/atomic_file.h"

extern char** environ;

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
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, argv[0], nullptr, nullptr, argv.data(), environ);
  if (error != 0) fail("{}: cannot be started: {}", arguments[0], std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) fail("{}: lost: {}", arguments[0], std::strerror(errno));
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  if (WIFSIGNALED(status)) fail("{} generate: ended by signal {}", arguments[0], WTERMSIG(status));
  fail("{} generate: failed with exit code {}", arguments[0], WEXITSTATUS(status));
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
