// The lossless matrix: what the dual view writes is, token for token, what plain AR writes.
// {f32, bf16, q8, q4, bf16 and q8 with keys and values in q8} x {block 2, 3, 8, 32, auto} x
// {greedy, three sampled settings, penalties sampled and greedy} x {1, 2, 3 threads} x {prefill in
// one chunk, chunks of 1, 7, 64} x {tiny, SmolLM2-135M}, and runs with --ignore-eos to the context
// limit. Over threads and chunks the draft weights {same, q8, q4 from a part of the vocabulary}
// take turns. The reference of a (model, format, sampling, prompt) is one plain AR run with one
// thread and one chunk, so the matrix also compares threads and chunks.
//
//   lossless_matrix --quick    a slice, for make test
//   lossless_matrix --full [--resume FILE] [--minutes N]
//       everything. FILE takes finished cells, and the same build goes on from it. After N minutes
//       (default 110) it stops between two cells with exit status 3.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "engine/test_models.h"
#include "orthrus/error.h"

namespace orthrus {
namespace {

struct Format {
  const char* name;
  WeightFormat weights;
  std::optional<KvType> kv;  // unset: what suits the weights
};
constexpr Format kFormats[] = {{"f32", WeightFormat::kF32, {}},
                               {"bf16", WeightFormat::kBF16, {}},
                               {"q8", WeightFormat::kQ8, {}},
                               {"q4", WeightFormat::kQ4, {}},
                               {"bf16 kv q8", WeightFormat::kBF16, KvType::kQ8},
                               {"q8 kv q8", WeightFormat::kQ8, KvType::kQ8}};
constexpr int kFormatCount = static_cast<int>(std::size(kFormats));
constexpr int64_t kBlocks[] = {2, 3, 8, 32, 0};  // 0: automatic
constexpr int kThreads[] = {1, 2, 3};
constexpr int64_t kChunks[] = {512, 1, 7, 64};
constexpr DraftWeights kDraftWeights[] = {DraftWeights::kSame, DraftWeights::kQ8,
                                          DraftWeights::kQ4};
constexpr const char* kDraftNames[] = {"same", "q8", "q4"};
constexpr const char* kSamplings[] = {"greedy",    "t07_k20_p08", "t10",
                                      "t12_min_p", "penalties",   "greedy_penalties"};
constexpr int kSamplingCount = 6;
// What a full run must have compared.
constexpr int64_t kLeastGenerations = 10000;
constexpr int64_t kLeastTokens = 500000;

/// FNV-1a of this program's own file: the results of one build say nothing about another.
std::string build_fingerprint() {
  std::ifstream file("/proc/self/exe", std::ios::binary);
  uint64_t hash = 14695981039346656037u;
  std::vector<char> buffer(1 << 16);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
    for (std::streamsize i = 0; i < file.gcount(); ++i) {
      hash = (hash ^ static_cast<unsigned char>(buffer[static_cast<size_t>(i)])) * 1099511628211u;
    }
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

SamplingOptions sampling(int which) {
  SamplingOptions s;
  s.seed = 1234 + static_cast<uint64_t>(which);
  switch (which) {
    case 1:
      s.temperature = 0.7, s.top_k = 20, s.top_p = 0.8;
      break;
    case 2:
      s.temperature = 1.0;
      break;
    case 3:
      s.temperature = 1.2, s.min_p = 0.05;
      break;
    case 4:
    case 5:
      s.temperature = which == 4 ? 0.8 : 0, s.repeat_penalty = 1.1, s.presence_penalty = 0.4;
      s.frequency_penalty = 0.2, s.logit_bias = {{30, -2.0}};
      break;
    default:
      break;
  }
  return s;
}

struct Scale {
  bool full = false;
  int tiny_prompts = 1, demo_prompts = 1;
  int64_t tiny_tokens = 48, demo_tokens = 24;
  int stride = 1;  // of the cells
  double minutes = 110;
};

struct Totals {
  int64_t generations = 0;  // compared with a reference
  int64_t tokens = 0, cells = 0, differences = 0;
  std::map<int64_t, int64_t> accepted;  // accepted drafts of a cycle -> how often
};

class Matrix {
 public:
  Matrix(Scale scale, std::string resume) : scale_(scale), resume_(std::move(resume)) {
    for (const auto& line : read_jsonl("tiny/generate.jsonl")) {
      tiny_prompts_.push_back(line.at("prompt_ids").get<std::vector<int32_t>>());
    }
    for (const auto& line : read_jsonl("smollm2/greedy.jsonl")) {
      demo_prompts_.push_back(line.at("prompt_ids").get<std::vector<int32_t>>());
    }
    if (!resume_.empty()) load_done();
  }

  /// The program's exit status: 0, 1 with differences or too little compared, 3 out of time.
  int run() {
    int index = 0;
    for (int model = 0; model < 2; ++model) {
      for (const Cell& c : cells(model)) {
        if (index++ % scale_.stride != 0) continue;
        if (out_of_time()) return stop_early();
        cell(c);
      }
      for (int format = 0; format < kFormatCount; ++format) {
        if (out_of_time()) return stop_early();
        if (scale_.full || (model == 0 && format % 2 == 1)) context_limit(model, format);
      }
    }
    report();
    return totals_.differences == 0 && enough() ? 0 : 1;
  }

 private:
  struct Cell {
    int model, format, threads;
    int64_t chunk;
    bool copy;
    int64_t block;
    int sampling;
  };

  /// Which of kDraftWeights.
  static size_t drafts(const Cell& c) {
    const auto chunk = std::find(std::begin(kChunks), std::end(kChunks), c.chunk);
    return (static_cast<size_t>(c.threads) + static_cast<size_t>(chunk - std::begin(kChunks))) % 3;
  }

  /// Cells of one loaded model lie side by side. Block 32 needs the copy adapter: the draft blocks
  /// of both models' own views have 8 rows.
  static std::vector<Cell> cells(int model) {
    std::vector<Cell> all;
    for (int format = 0; format < kFormatCount; ++format) {
      for (int threads : kThreads) {
        for (int64_t chunk : kChunks) {
          for (bool copy : {false, true}) {
            for (int64_t block : kBlocks) {
              if ((block == 32) != copy) continue;
              for (int s = 0; s < kSamplingCount; ++s) {
                all.push_back({model, format, threads, chunk, copy, block, s});
              }
            }
          }
        }
      }
    }
    return all;
  }

  static std::string name(const Cell& c) {
    return std::string(c.model == 0 ? "tiny" : "smollm2") + " " + kFormats[c.format].name +
           " block " + (c.block ? std::to_string(c.block) : "auto") + " " + kSamplings[c.sampling] +
           " threads " + std::to_string(c.threads) + " chunk " + std::to_string(c.chunk) +
           " drafts " + kDraftNames[drafts(c)];
  }

  LoadOptions load_options(const Cell& c) const {
    const Format& format = kFormats[c.format];
    LoadOptions options = c.model == 0 ? tiny_options(format.weights, c.threads, c.chunk)
                                       : demo_options(format.weights, c.threads, c.chunk);
    options.key_type = options.value_type = format.kv;
    if (c.copy) options.adapter = "copy";
    options.draft_weights = kDraftWeights[drafts(c)];
    if (options.draft_weights == DraftWeights::kQ4)
      options.draft_vocab = c.model == 0 ? 300 : 20000;
    options.max_seq_len = 1024;
    return options;
  }

  /// Keeps the last model: neighbouring cells share it.
  Generator& generator(const Cell& c) {
    const auto key = std::tuple(c.model, c.format, c.threads, c.chunk, c.copy);
    if (!generator_ || key != key_) {
      generator_.reset();
      generator_ = std::make_unique<Generator>(load_options(c));
      key_ = key;
    }
    return *generator_;
  }

  std::span<const int32_t> prompt(int model, size_t i) const {
    const auto& prompts = model == 0 ? tiny_prompts_ : demo_prompts_;
    return prompts[i % prompts.size()];
  }

  GenerateOptions options(const Cell& c, int64_t tokens) const {
    GenerateOptions o;
    o.max_new_tokens = tokens;
    o.sampling = sampling(c.sampling);
    o.draft_max = c.block ? c.block - 1 : -1;
    return o;
  }

  const std::vector<int32_t>& reference(const Cell& c, size_t i) {
    const auto key = std::tuple(c.model, c.format, c.sampling, i);
    auto found = references_.find(key);
    if (found == references_.end()) {
      // The reference has a model of its own: one thread, one chunk, no diffusion view.
      const auto reference_key = std::pair(c.model, c.format);
      if (!reference_generator_ || reference_key != reference_key_) {
        reference_generator_.reset();
        LoadOptions load = load_options({c.model, c.format, 1, 512, false, 2, 0});
        load.diffusion = false;
        load.adapter.clear();
        reference_generator_ = std::make_unique<Generator>(load);
        reference_key_ = reference_key;
      }
      GenerateOptions o = options(c, c.model == 0 ? scale_.tiny_tokens : scale_.demo_tokens);
      o.use_diffusion_mode = false;
      auto result = reference_generator_->generate(prompt(c.model, i), o, nullptr, nullptr, {});
      found = references_.emplace(key, std::move(result.token_ids)).first;
    }
    return found->second;
  }

  void compare(const std::string& what, const std::vector<int32_t>& expected,
               const GenerateResult& dual) {
    ++totals_.generations;
    totals_.tokens += static_cast<int64_t>(expected.size());
    for (int64_t accepted : dual.accepted_per_cycle) ++totals_.accepted[accepted];
    if (dual.token_ids == expected) return;
    ++totals_.differences;
    const auto at = std::mismatch(expected.begin(), expected.end(), dual.token_ids.begin(),
                                  dual.token_ids.end());
    std::printf("DIFFERENCE: %s: token %td of %zu (dual has %zu)\n", what.c_str(),
                at.first - expected.begin(), expected.size(), dual.token_ids.size());
  }

  void cell(const Cell& c) {
    const std::string cell_name = name(c);
    if (done_.count(cell_name)) return;
    // Fewer where a generation takes long: more threads than cores, prefill token by token.
    const bool slow = c.model == 1 && (c.threads > 2 || c.chunk == 1);
    const int prompts = c.model == 0 ? scale_.tiny_prompts : slow ? 1 : scale_.demo_prompts;
    for (int i = 0; i < prompts; ++i) {
      // Other prompts in other cells, so that the matrix sees many of them.
      const size_t which = static_cast<size_t>(i) + static_cast<size_t>(c.sampling) * 3;
      const auto& expected = reference(c, which);
      const GenerateOptions o = options(c, c.model == 0 ? scale_.tiny_tokens : scale_.demo_tokens);
      compare(cell_name, expected,
              generator(c).generate(prompt(c.model, which), o, nullptr, nullptr, {}));
    }
    ++totals_.cells;
    save(cell_name);
    if (scale_.full && totals_.cells % 100 == 0) report();
  }

  /// --ignore-eos to the end of the context.
  void context_limit(int model, int format) {
    const Cell c{model, format, 2, 512, false, 8, 0};
    const std::string cell_name = name(c) + " to the context limit";
    if (done_.count(cell_name)) return;
    LoadOptions load = load_options(c);
    load.max_seq_len = model == 0 ? 1024 : 512;
    Generator gen(load);
    GenerateOptions o = options(c, -1);
    o.ignore_eos = true;
    const GenerateResult dual = gen.generate(prompt(model, 0), o, nullptr, nullptr, {});
    o.use_diffusion_mode = false;
    const GenerateResult ar = gen.generate(prompt(model, 0), o, nullptr, nullptr, {});
    compare(cell_name, ar.token_ids, dual);
    if (dual.prompt_tokens + static_cast<int64_t>(dual.token_ids.size()) != load.max_seq_len) {
      ++totals_.differences;
      std::printf("DIFFERENCE: %s: the context was not filled\n", cell_name.c_str());
    }
    ++totals_.cells;
    save(cell_name);
  }

  bool out_of_time() const {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    return passed.count() > scale_.minutes * 60;
  }

  int stop_early() const {
    report();
    if (resume_.empty()) {
      std::printf("stopped after %g minutes; with --resume FILE another run could go on\n",
                  scale_.minutes);
    } else {
      std::printf("stopped after %g minutes; the same command with --resume %s goes on\n",
                  scale_.minutes, resume_.c_str());
    }
    return 3;
  }

  bool enough() const {
    if (!scale_.full) return true;
    const bool good = totals_.generations >= kLeastGenerations && totals_.tokens >= kLeastTokens;
    if (!good) {
      std::printf("too little compared: expected %lld generations and %lld tokens\n",
                  static_cast<long long>(kLeastGenerations), static_cast<long long>(kLeastTokens));
    }
    return good;
  }

  void load_done() {
    const std::string build = build_fingerprint();
    std::ifstream file(resume_);
    std::string line;
    std::getline(file, line);
    const auto first = nlohmann::json::parse(line, nullptr, false);
    if (!first.is_object() || first.value("build", "") != build) {
      if (!line.empty()) {
        std::printf("%s is of another build: starting anew\n", resume_.c_str());
      }
      std::ofstream(resume_) << nlohmann::json{{"build", build}}.dump() << "\n";
      return;
    }
    while (std::getline(file, line)) {
      const auto cell = nlohmann::json::parse(line, nullptr, false);
      if (cell.is_discarded()) continue;  // the line a stopped run was writing
      done_.insert(cell.at("cell").get<std::string>());
      totals_.generations = cell.at("generations");
      totals_.tokens = cell.at("tokens");
      totals_.differences = cell.at("differences");
      totals_.cells = cell.at("cells");
      totals_.accepted.clear();
      for (const auto& pair : cell.at("accepted")) totals_.accepted[pair[0]] = pair[1];
    }
    if (!done_.empty()) std::printf("resumed: %zu cells were done\n", done_.size());
  }

  void save(const std::string& cell_name) {
    if (resume_.empty()) return;
    nlohmann::json accepted = nlohmann::json::array();
    for (const auto& [length, count] : totals_.accepted) accepted.push_back({length, count});
    std::ofstream(resume_, std::ios::app) << nlohmann::json{{"cell", cell_name},
                                                            {"cells", totals_.cells},
                                                            {"generations", totals_.generations},
                                                            {"tokens", totals_.tokens},
                                                            {"differences", totals_.differences},
                                                            {"accepted", accepted}}
                                                 .dump()
                                          << "\n";
  }

  void report() const {
    std::printf(
        "%lld cells, %lld generations, %lld compared tokens, differences: %lld\naccepted drafts a "
        "cycle:",
        static_cast<long long>(totals_.cells), static_cast<long long>(totals_.generations),
        static_cast<long long>(totals_.tokens), static_cast<long long>(totals_.differences));
    for (const auto& [length, count] : totals_.accepted) {
      std::printf(" %lld:%lld", static_cast<long long>(length), static_cast<long long>(count));
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  Scale scale_;
  std::string resume_;
  std::set<std::string> done_;
  std::vector<std::vector<int32_t>> tiny_prompts_, demo_prompts_;
  std::map<std::tuple<int, int, int, size_t>, std::vector<int32_t>> references_;
  std::unique_ptr<Generator> reference_generator_;
  std::pair<int, int> reference_key_;
  std::unique_ptr<Generator> generator_;
  std::tuple<int, int, int, int64_t, bool> key_;
  Totals totals_;
};

int main(int argc, char** argv) {
  Scale scale;
  scale.stride = 19;
  std::string resume;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--full")) {
      scale = {true, 8, 2, 64, 32, 1, scale.minutes};
    } else if (!std::strcmp(argv[i], "--resume") && i + 1 < argc) {
      resume = argv[++i];
    } else if (!std::strcmp(argv[i], "--minutes") && i + 1 < argc && std::atof(argv[i + 1]) > 0) {
      scale.minutes = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--quick")) {
      std::fprintf(stderr,
                   "usage: lossless_matrix --quick | --full [--resume FILE] [--minutes N]\n");
      return 2;
    }
  }
  return Matrix(scale, resume).run();
}

}  // namespace
}  // namespace orthrus

int main(int argc, char** argv) {
  try {
    return orthrus::main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "lossless_matrix: %s\n", error.what());
    return 1;
  }
}
