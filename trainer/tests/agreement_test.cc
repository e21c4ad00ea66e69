// Both views of the libtorch model against the engine's, in float32.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <string>

#include "base/error.h"
#include "model/forward.h"
#include "model/weights.h"
#include "text/tokenizer.h"
#include "trainer/model/dual_model.h"
#include "trainer/tests/random_model.h"

namespace orthrus::train {
namespace {

constexpr double kTolerance = 2e-4;
/// The first position of a sequence carries activations in the thousands. Rows that see nothing
/// else are worse conditioned: there float32 is up to 1e-3 away from float64, here as in the
/// engine.
constexpr double kFirstPositionTolerance = 2e-3;

std::string demo_model() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  if (const std::string given = value("ORTHRUS_DEMO_GGUF"); !given.empty()) return given;
  const std::string cache =
      value("XDG_CACHE_HOME").empty() ? value("HOME") + "/.cache" : value("XDG_CACHE_HOME");
  return cache + "/orthrus/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf";
}

/// The engine's float32 logits of the same documents and blocks.
class Engine {
 public:
  Engine(const Checkpoint& checkpoint, LoadRequest::Diffusion diffusion, const Adapter* adapter)
      : pool_(2), context_{choose_isa(), pool_} {
    LoadRequest request;
    request.format = WeightFormat::kF32;
    request.diffusion = diffusion;
    request.adapter = adapter;
    model_ = load_model(checkpoint, request, pool_);
    blocks_.emplace(kv_layout(model_.config, KvType::kF32, KvType::kF32), 64);
    forward_ = std::make_unique<Forward>(model_, blocks_->layout(), context_, 256);
  }

  void begin(std::span<const int32_t> document) {
    document_ = document;
    table_.emplace(*blocks_);
  }
  at::Tensor ar() {
    const auto size = static_cast<int64_t>(document_.size());
    table_->reserve(size);
    const Span span{&*table_, View::kAr, document_, 0, 0, size};
    const at::Tensor logits = copy(forward_->run(span), size);
    table_->set_length(size);
    return logits;
  }
  at::Tensor draft(int64_t position, int64_t rows) {
    std::vector<int32_t> tokens(static_cast<size_t>(rows), kMaskToken);
    tokens[0] = document_[static_cast<size_t>(position)];
    const Span span{&*table_, View::kDiffusion, tokens, position, 0, rows};
    return copy(forward_->run(span), rows);
  }

 private:
  at::Tensor copy(std::span<const float> logits, int64_t rows) {
    return at::from_blob(const_cast<float*>(logits.data()), {rows, model_.config.vocab_size})
        .clone();
  }

  ThreadPool pool_;
  ComputeContext context_;
  Model model_;
  std::optional<BlockPool> blocks_;
  std::unique_ptr<Forward> forward_;
  std::span<const int32_t> document_;
  std::optional<BlockTable> table_;
};

/// Near ties (the two best within 0.02) may fall either way; nothing else may.
void expect_same(const at::Tensor& ours, const at::Tensor& engine, double& worst) {
  ASSERT_EQ(ours.sizes(), engine.sizes());
  worst = std::max(worst, (ours - engine).abs().max().item<double>());
  const at::Tensor best = std::get<0>(engine.topk(2, -1));
  const at::Tensor clear = (best.select(1, 0) - best.select(1, 1)) > 0.02;
  const at::Tensor differ = (ours.argmax(-1) != engine.argmax(-1)).logical_and(clear);
  EXPECT_EQ(differ.sum().item<int64_t>(), 0);
}

using Documents = std::vector<std::vector<int32_t>>;

/// The documents in one packed row, blocks in all of them. The diffusion view is the adapter's, the
/// checkpoint's own, or copies.
void compare(const std::string& model_path, const std::string& adapter_path,
             const Documents& documents) {
  const Checkpoint checkpoint = open_checkpoint(model_path);
  std::optional<Adapter> adapter;
  auto source = DiffusionSource::kCopy;
  auto engine_source = LoadRequest::Diffusion::kCopy;
  if (!adapter_path.empty()) {
    adapter = open_adapter(adapter_path, checkpoint.config);
    source = DiffusionSource::kAdapter;
    engine_source = LoadRequest::Diffusion::kAdapter;
  } else if (checkpoint.config.is_orthrus) {
    source = DiffusionSource::kCheckpoint;
    engine_source = LoadRequest::Diffusion::kCheckpoint;
  }
  const Adapter* const given = adapter ? &*adapter : nullptr;
  Engine engine(checkpoint, engine_source, given);
  const DualModel model(load_tensors(checkpoint, source, given));
  const int64_t block_size = model.config().block_size;

  PackedRow row;
  std::vector<Block> blocks;
  for (const std::vector<int32_t>& document : documents) {
    const auto begin = static_cast<int64_t>(row.tokens.size());
    const auto length = static_cast<int64_t>(document.size());
    row.tokens.insert(row.tokens.end(), document.begin(), document.end());
    for (const int64_t anchor : {int64_t{0}, int64_t{1}, length / 2, length / 2 + 1, length - 1}) {
      blocks.push_back({begin + anchor, static_cast<int64_t>(row.documents.size())});
    }
    row.documents.push_back({begin, begin + length});
  }

  const at::NoGradGuard no_grad;
  const ArPass ar = model.forward_ar(row);
  const at::Tensor ar_logits = model.logits(ar.hidden);
  const at::Tensor hidden = model.forward_diffusion(row, ar, blocks, block_size);
  double worst_ar = 0, worst_diffusion = 0, worst_first = 0;
  for (size_t d = 0; d < documents.size(); ++d) {
    const PackedRow::Document& range = row.documents[d];
    engine.begin(documents[d]);
    const at::Tensor ours = ar_logits.narrow(0, range.begin, range.end - range.begin);
    const at::Tensor theirs = engine.ar();
    expect_same(ours.narrow(0, 0, 1), theirs.narrow(0, 0, 1), worst_first);
    expect_same(ours.slice(0, 1), theirs.slice(0, 1), worst_ar);
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].document != static_cast<int64_t>(d)) continue;
      const int64_t position = blocks[b].anchor - range.begin;
      expect_same(model.logits(hidden[static_cast<int64_t>(b)]), engine.draft(position, block_size),
                  position == 0 ? worst_first : worst_diffusion);
    }
  }
  EXPECT_LE(worst_ar, kTolerance);
  EXPECT_LE(worst_diffusion, kTolerance);
  EXPECT_LE(worst_first, kFirstPositionTolerance);
  std::printf("largest difference of logits: AR %.2e, diffusion %.2e, first position %.2e\n",
              worst_ar, worst_diffusion, worst_first);
}

Documents random_documents() {
  std::mt19937 random(5);
  Documents documents;
  for (const size_t length : {150, 7, 61}) {
    auto& document = documents.emplace_back(length);
    for (int32_t& token : document) token = static_cast<int32_t>(random() % 1000);
  }
  return documents;
}

TEST(Agreement, TinyCheckpoint) {
  compare(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint", "", random_documents());
}

TEST(Agreement, Qwen2WithBiases) {
  const RandomModel model(R"({"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2",
      "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
      "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
      "tie_word_embeddings": true})");
  compare(model.path(), "", random_documents());
}

TEST(Agreement, LlamaWithScaledRopeAndItsOwnHead) {
  const RandomModel model(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
      "vocab_size": 1000, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 1, "hidden_act": "silu",
      "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
      "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
      "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
      "tie_word_embeddings": false})");
  compare(model.path(), "", random_documents());
}

TEST(Agreement, DemoModelWithItsAdapter) {
  const std::string path = demo_model();
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing: run `make pull`";
  const Tokenizer tokenizer = Tokenizer::load(path);
  Documents documents;
  for (const char* text :
       {"<|im_start|>user\nA farmer has 17 cows and sells 5 of them for $400 each. With the money "
        "he "
        "buys 8 sheep at $120 each. How much is left, and how many animals has he now?<|im_end|>\n"
        "<|im_start|>assistant\nThe farmer gets 5 * 400 = 2000 dollars. The sheep cost 8 * 120 = "
        "960 "
        "dollars. So he has 2000 - 960 = 1040 dollars left, and 12 cows and 8 sheep.<|im_end|>",
        "<|im_start|>user\nHi<|im_end|>\n",
        "<|im_start|>assistant\ndef add(a, b):\n    return a + b\n"}) {
    documents.push_back(tokenizer.encode(text));
  }
  compare(path, std::string(ORTHRUS_SOURCE_DIR) + "/models/smollm2-135m", documents);
}

}  // namespace
}  // namespace orthrus::train
