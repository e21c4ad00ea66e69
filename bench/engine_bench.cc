// The engine alone, without server and tokenizer: what its passes take for requests that are all
// there at once. bench/load/overhead.py compares the server with it.
//   orthrus_engine_bench MODEL WEIGHTS CONTEXT BATCH WARM_UP.jsonl REQUESTS.jsonl
// A line of the files has "token_ids" and "max_tokens"; answers are greedy and in the AR view.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/generator.h"
#include "engine/prompt_lines.h"

namespace {

using namespace orthrus;

struct Counter : EngineListener {
  void on_done(GenerateResult result) override {
    tokens = static_cast<int64_t>(result.token_ids.size());
  }
  void on_failed(const Error& error) override { fail("a request failed: {}", error.what()); }
  int64_t tokens = 0;
};

WeightFormat weight_format(const std::string& name) {
  constexpr std::pair<const char*, WeightFormat> kFormats[] = {{"auto", WeightFormat::kAuto},
                                                               {"f32", WeightFormat::kF32},
                                                               {"bf16", WeightFormat::kBF16},
                                                               {"q8", WeightFormat::kQ8},
                                                               {"q4", WeightFormat::kQ4}};
  for (const auto& [known, format] : kFormats) {
    if (name == known) return format;
  }
  fail_usage("weights: expected auto, f32, bf16, q8 or q4, found {}", name);
}

std::vector<EngineRequest> read_requests(const std::string& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<EngineRequest> requests;
  for (const PromptLine& line : parse_prompt_lines(text, path)) {
    if (!line.token_ids) fail("{}: expected \"token_ids\"", line.where);
    EngineRequest& request = requests.emplace_back();
    request.prompt = *line.token_ids;
    request.options.max_new_tokens = line.max_tokens.value_or(-1);
    request.options.use_diffusion_mode = false;
  }
  if (requests.empty()) fail("{}: expected one JSON object a line, found none", path);
  return requests;
}

/// All of them; the tokens of their answers.
int64_t run(Engine& engine, const std::vector<EngineRequest>& requests) {
  std::vector<Counter> counters(requests.size());
  std::vector<Engine::Submission> submissions;
  for (size_t i = 0; i < requests.size(); ++i) submissions.push_back({requests[i], &counters[i]});
  engine.submit(std::move(submissions));
  while (engine.step()) {
  }
  int64_t tokens = 0;
  for (const Counter& counter : counters) tokens += counter.tokens;
  return tokens;
}

void bench(char** arguments) {
  using Clock = std::chrono::steady_clock;
  LoadOptions load;
  load.model = arguments[0];
  load.weights = weight_format(arguments[1]);
  load.max_seq_len = std::stoll(arguments[2]);
  load.batch = std::stoll(arguments[3]);
  load.kv_cache_memory_budget_gb = 40;
  Generator generator(load);
  EngineOptions options;
  options.decode_batch_size = load.batch;
  options.dynamic_batch = false;  // as that of a server that has run for a while
  Engine engine({generator.answer_parts(), generator.forward(), generator.block_pool()}, options);
  run(engine, read_requests(arguments[4]));
  const std::vector<EngineRequest> requests = read_requests(arguments[5]);
  const Clock::time_point begin = Clock::now();
  const int64_t tokens = run(engine, requests);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print("{{\"seconds\": {:.6f}, \"tokens\": {}}}\n", seconds, tokens);
}

}  // namespace

int main(int count, char** arguments) {
  init_logging();
  if (count != 7) {
    fmt::print(stderr, "usage: {} MODEL WEIGHTS CONTEXT BATCH WARM_UP.jsonl REQUESTS.jsonl\n",
               arguments[0]);
    return 2;
  }
  try {
    bench(arguments + 1);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
