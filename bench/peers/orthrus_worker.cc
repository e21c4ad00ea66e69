// This engine's side of the race (bench/peers/race.py): the same protocol as the peers' workers.
//   orthrus_race_worker MODEL THREADS
// Commands on stdin, one JSON object a line on stdout:
//   ready                     once the process has started: {}
//   load                      opens the model and computes the first token: {"seconds"}
//   about                     {"about": {"version", "flags", "kv"}}
//   prefill TOKENS            into an empty cache, logits of the last row: {"seconds"}
//   decode ROWS CONTEXT STEPS steps of ROWS sequences behind CONTEXT tokens each: {"seconds"}
//   generate MODE COUNT IDS   greedily, MODE ar or dual, IDS with commas: {"seconds", "tokens"}
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "engine/generator.h"
#include "kernels/row_ops.h"

namespace {

using namespace orthrus;

constexpr int64_t kMaxContext = 4096 + 256;
constexpr int64_t kMaxRows = 32;
constexpr int64_t kChunk = 512;
constexpr int64_t kFirstPrompt = 8;

class Timer {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_ = Clock::now();
};

class Worker {
 public:
  Worker(std::string model, int threads) {
    options_.model = std::move(model);
    options_.threads = threads;
    options_.max_seq_len = kMaxContext;
    options_.batch = kMaxRows;
    options_.ubatch = kChunk;
  }

  double load() {
    const Timer timer;
    generator_ = std::make_unique<Generator>(options_);
    BlockTable table(generator_->block_pool());
    fill(table, kFirstPrompt, 0);
    return timer.seconds();
  }

  double prefill(int64_t tokens) {
    if (tokens < 1 || tokens > kChunk) fail_usage("prefill: 1 to {} tokens", kChunk);
    BlockTable table(generator_->block_pool());
    const Timer timer;
    fill(table, tokens, 0);
    return timer.seconds();
  }

  double decode(int64_t rows, int64_t context, int64_t steps) {
    if (rows < 1 || rows > kMaxRows || steps < 1 || context + steps > kMaxContext) {
      fail_usage("decode: rows 1 to {}, context and steps to {}", kMaxRows, kMaxContext);
    }
    std::vector<BlockTable>& tables = sequences(rows, context);
    std::vector<int32_t> tokens(static_cast<size_t>(rows));
    for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = made_up_token(static_cast<int64_t>(i));
    for (BlockTable& table : tables) table.reserve(context + steps);
    std::vector<Span> spans(tables.size());
    const Timer timer;
    for (int64_t position = context; position < context + steps; ++position) {
      for (size_t i = 0; i < tables.size(); ++i) {
        spans[i] = {&tables[i], View::kAr, {&tokens[i], 1}, position, 0, 1};
      }
      const Logits logits = generator_->forward().run(spans);
      for (size_t i = 0; i < tables.size(); ++i) {
        tables[i].set_length(position + 1);
        tokens[i] = best(logits.of(i), 0);
      }
    }
    const double seconds = timer.seconds();
    for (BlockTable& table : tables) table.set_length(context);
    return seconds;
  }

  std::pair<double, std::vector<int32_t>> generate(const std::string& mode, int64_t count,
                                                   const std::vector<int32_t>& prompt) {
    if (mode != "ar" && mode != "dual") fail_usage("generate: expected ar or dual, found {}", mode);
    GenerateOptions options;
    options.max_new_tokens = count;
    options.ignore_eos = true;
    options.use_diffusion_mode = mode == "dual";
    const Timer timer;
    const GenerateResult result =
        generator_->generate(prompt, options, nullptr, nullptr, std::stop_token());
    return {timer.seconds(), result.token_ids};
  }

  /// What the table says of this engine.
  std::string about() const {
    const KvType kv = generator_->block_pool().layout().key_type;
    return fmt::format(R"({{"version": "orthrus {}", "flags": "{} kernels", "kv": "{}"}})",
                       ORTHRUS_VERSION, isa_name(generator_->forward().context().isa),
                       kv == KvType::kBF16 ? "bf16" : "f32");
  }

  bool loaded() const { return generator_ != nullptr; }

 private:
  int64_t vocab_size() const { return generator_->loaded().model.config.vocab_size; }

  /// Ids as the peers' workers choose them (bench/peers/worker.py).
  int32_t made_up_token(int64_t i) const {
    return static_cast<int32_t>(100 + i * 7919 % (vocab_size() / 2));
  }

  int32_t best(std::span<const float> logits, size_t row) const {
    const auto size = static_cast<size_t>(vocab_size());
    return static_cast<int32_t>(
        row_ops(generator_->forward().context().isa).argmax(&logits[row * size], vocab_size()));
  }

  /// Appends made-up tokens up to `length`; logits and argmax of the last one.
  void fill(BlockTable& table, int64_t length, int64_t seed) {
    table.reserve(length);
    while (table.length() < length) {
      const int64_t first = table.length();
      std::vector<int32_t> tokens(static_cast<size_t>(std::min(kChunk, length - first)));
      for (size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = made_up_token(seed + first + static_cast<int64_t>(i));
      }
      const auto count = static_cast<int64_t>(tokens.size());
      const bool last = first + count == length;
      const Span span{&table, View::kAr, tokens, first, last ? count - 1 : count, count};
      const std::span<const float> logits = generator_->forward().run(span);
      if (last) best(logits, 0);
      table.set_length(first + count);
    }
  }

  /// Kept for the next repetition.
  std::vector<BlockTable>& sequences(int64_t rows, int64_t context) {
    std::vector<BlockTable>& tables = sequences_[{rows, context}];
    for (auto row = static_cast<int64_t>(tables.size()); row < rows; ++row) {
      fill(tables.emplace_back(generator_->block_pool()), context, row);
    }
    return tables;
  }

  LoadOptions options_;
  std::unique_ptr<Generator> generator_;
  std::map<std::pair<int64_t, int64_t>, std::vector<BlockTable>> sequences_;
};

std::vector<int32_t> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  std::istringstream in(text);
  for (std::string id; std::getline(in, id, ',');) ids.push_back(std::stoi(id));
  return ids;
}

std::string answer(Worker& worker, const std::string& line) {
  std::istringstream in(line);
  std::string command;
  in >> command;
  if (command == "ready") return "{}";
  if (command == "load") return fmt::format("{{\"seconds\": {:.9f}}}", worker.load());
  if (!worker.loaded()) fail_usage("{}: load comes first", command);
  if (command == "about") return fmt::format("{{\"about\": {}}}", worker.about());
  if (command == "prefill") {
    int64_t tokens = 0;
    in >> tokens;
    return fmt::format("{{\"seconds\": {:.9f}}}", worker.prefill(tokens));
  }
  if (command == "decode") {
    int64_t rows = 0, context = 0, steps = 0;
    in >> rows >> context >> steps;
    return fmt::format("{{\"seconds\": {:.9f}}}", worker.decode(rows, context, steps));
  }
  if (command == "generate") {
    std::string mode, ids;
    int64_t count = 0;
    in >> mode >> count >> ids;
    const auto [seconds, tokens] = worker.generate(mode, count, parse_ids(ids));
    return fmt::format("{{\"seconds\": {:.9f}, \"tokens\": [{}]}}", seconds,
                       fmt::join(tokens, ", "));
  }
  fail_usage("expected ready, load, about, prefill, decode or generate, found {}", command);
}

}  // namespace

int main(int count, char** arguments) {
  init_logging();
  if (count != 3) {
    fmt::print(stderr, "usage: {} MODEL THREADS\n", arguments[0]);
    return 2;
  }
  try {
    Worker worker(arguments[1], std::stoi(arguments[2]));
    for (std::string line; std::getline(std::cin, line);) {
      fmt::print("{}\n", answer(worker, line));
      std::fflush(stdout);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}
