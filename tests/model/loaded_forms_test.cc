// Models of random values, written in every form that the loader reads: each form must compute the
// same bits, and what the formulas say.

#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <numeric>

#include "formats/adapter.h"
#include "model/plain_forward.h"
#include "model/random_files.h"
#include "model/tiny_model.h"

namespace orthrus {
namespace {

using testing::PlainForward;
using testing::RandomFiles;
using testing::TempDir;

constexpr int64_t kTokens = 70;  // more than a block of the cache
constexpr int64_t kAnchor = 66;
constexpr int64_t kBlock = 5;

ModelConfig small_config() {
  ModelConfig c;
  c.vocab_size = 150;
  c.hidden_size = 96;
  c.intermediate_size = 80;
  c.num_layers = 2;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 32;
  c.max_position_embeddings = 256;
  c.rms_norm_eps = 1e-5;
  c.block_size = 8;
  return c;
}

/// Every bias that Llama configurations know, lm_head of its own, llama3 scaling.
RandomFiles llama() {
  RandomFiles files{small_config(), {}, {}};
  files.config.architecture = Architecture::kLlama;
  files.config.attention_bias = files.config.attention_out_bias = files.config.mlp_bias = true;
  files.config.mask_token_id = 149;
  files.config.rope.theta = 10000;
  testing::scale_as_llama3(files, 8, 1, 4, 32);
  testing::fill(files, 1);
  return files;
}

/// Biases of q, k and v, tied embeddings, linear scaling; the mask is an embedding of its own.
RandomFiles qwen2() {
  RandomFiles files{small_config(), {}, {}};
  files.config.architecture = Architecture::kQwen2;
  files.config.attention_bias = true;
  files.config.tie_word_embeddings = true;
  files.config.rope.theta = 1e6;
  testing::scale_linearly(files, 4);
  testing::fill(files, 2);
  return files;
}

/// Norms of q and k, lm_head of its own.
RandomFiles qwen3() {
  RandomFiles files{small_config(), {}, {}};
  files.config.architecture = Architecture::kQwen3;
  files.config.qk_norm = true;
  files.config.mask_token_id = 3;
  files.config.rope.theta = 1e6;
  testing::fill(files, 3);
  return files;
}

/// qwen3() beyond the context that it was trained with.
RandomFiles qwen3_yarn() {
  RandomFiles files = qwen3();
  files.config.rope.theta = 1e4;
  testing::scale_as_yarn(files, 4, 4, 1, 64);
  return files;
}

std::vector<int32_t> some_tokens() {
  std::vector<int32_t> tokens(kTokens);
  for (int32_t i = 0; i < kTokens; ++i) tokens[static_cast<size_t>(i)] = (i * 37 + i * i) % 148;
  return tokens;
}

/// Logits of all tokens in the AR view, then of the diffusion block.
std::vector<float> logits(const Checkpoint& checkpoint, const LoadRequest& request,
                          Isa isa = choose_isa()) {
  ReadyModel ready(checkpoint, request, KvType::kF32, 2, isa);
  BlockTable table(*ready.blocks);
  const std::vector<int32_t> tokens = some_tokens();
  std::vector<float> all = ready.prefill(table, tokens, 9);
  const std::vector<float> block = ready.draft(table, tokens[kAnchor], kAnchor, kBlock);
  all.insert(all.end(), block.begin(), block.end());
  return all;
}

std::vector<float> with_adapter(const std::string& model, const std::string& adapter_path,
                                WeightFormat format, Isa isa = choose_isa()) {
  const Checkpoint checkpoint = open_checkpoint(model);
  const Adapter adapter = open_adapter(adapter_path, checkpoint.config);
  LoadRequest request;
  request.format = format;
  request.diffusion = LoadRequest::Diffusion::kAdapter;
  request.adapter = &adapter;
  return logits(checkpoint, request, isa);
}

std::vector<float> with_own_diffusion(const std::string& model) {
  LoadRequest request;
  request.diffusion = LoadRequest::Diffusion::kCheckpoint;
  return logits(open_checkpoint(model), request);
}

std::vector<double> plain(const RandomFiles& files) {
  return PlainForward(files).logits(some_tokens(), kAnchor, kBlock);
}

template <typename T>
double max_difference(const std::vector<T>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - b[i]));
  }
  return worst;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

struct Form {
  const char* name;
  RandomFiles (*make)();
};

class LoadedForms : public ::testing::TestWithParam<Form> {
 protected:
  const RandomFiles files_ = GetParam().make();
  TempDir hf_dir_, gguf_dir_;
};
INSTANTIATE_TEST_SUITE_P(All, LoadedForms,
                         ::testing::Values(Form{"llama", llama}, Form{"qwen2", qwen2},
                                           Form{"qwen3", qwen3}, Form{"qwen3_yarn", qwen3_yarn}),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(LoadedForms, BothViewsAreWhatTheFormulasSay) {
  const std::string hf = testing::write_hf(files_, false, hf_dir_);
  const std::vector<double> truth = plain(files_);
  const double largest = std::abs(*std::max_element(
      truth.begin(), truth.end(), [](double a, double b) { return std::abs(a) < std::abs(b); }));
  EXPECT_GT(largest, 1);
  EXPECT_LT(largest, 30);
  const std::string adapter = testing::write_adapter(files_, hf_dir_);
  for (const Isa isa : kIsas) {
    if (!isa_supported(isa)) continue;
    const double worst = max_difference(with_adapter(hf, adapter, WeightFormat::kF32, isa), truth);
    std::printf("%s, %s: logits up to %.1f, largest difference %.2e\n", GetParam().name,
                std::string(isa_name(isa)).c_str(), largest, worst);
    EXPECT_LT(worst, 1e-4);
  }
}

TEST_P(LoadedForms, GgufEqualsHuggingFaceToTheBit) {
  const std::string hf = testing::write_hf(files_, false, hf_dir_);
  const std::string gguf = testing::write_gguf(files_, false, gguf_dir_);
  const std::string adapter = testing::write_adapter(files_, hf_dir_);
  for (const WeightFormat format : {WeightFormat::kAuto, WeightFormat::kF32, WeightFormat::kBF16,
                                    WeightFormat::kQ8, WeightFormat::kQ4}) {
    EXPECT_TRUE(same_bits(with_adapter(gguf, adapter, format), with_adapter(hf, adapter, format)))
        << "format " << static_cast<int>(format);
  }
}

class OwnDiffusionView : public LoadedForms {};
INSTANTIATE_TEST_SUITE_P(All, OwnDiffusionView,  // with a mask token: only adapters bring a row
                         ::testing::Values(Form{"llama", llama}, Form{"qwen3", qwen3}),
                         [](const auto& param) { return std::string(param.param.name); });

// A diffusion view inside the checkpoint, in llama-architecture GGUF with interleaved rows too.
TEST_P(OwnDiffusionView, EqualsTheAdapter) {
  const std::string hf = testing::write_hf(files_, true, hf_dir_);
  const std::string gguf = testing::write_gguf(files_, true, gguf_dir_);
  const std::vector<float> expected =
      with_adapter(hf, testing::write_adapter(files_, gguf_dir_), WeightFormat::kAuto);
  EXPECT_TRUE(same_bits(with_own_diffusion(hf), expected));
  EXPECT_TRUE(same_bits(with_own_diffusion(gguf), expected));
}

/// What a loader may get wrong, done to the files.
struct Mistake {
  const char* name;
  RandomFiles (*make)();
  std::function<void(RandomFiles&)> apply;
};

void swap_start(std::vector<float>& a, std::vector<float>& b) {
  std::swap_ranges(a.begin(), a.begin() + static_cast<long>(std::min(a.size(), b.size())),
                   b.begin());
}

std::vector<Mistake> mistakes() {
  const auto tensor = [](RandomFiles& f, const std::string& part) -> std::vector<float>& {
    return f.tensors.at(layer_tensor(1, part));
  };
  const auto forget = [](RandomFiles& f, const std::string& part) {
    f.tensors.erase(layer_tensor(1, part));
  };
  std::vector<Mistake> all = {
      {"k's bias for q", llama,
       [=](RandomFiles& f) {
         swap_start(tensor(f, "self_attn.q_proj.bias"), tensor(f, "self_attn.k_proj.bias"));
       }},
      {"biases left in the order of GGUF", llama,
       [=](RandomFiles& f) {
         auto& bias = tensor(f, "self_attn.k_proj.bias");
         bias = testing::interleave_halves(bias, f.config.head_dim, 1);
       }},
      {"no divisors", llama, [](RandomFiles& f) { f.config.rope.divisors.clear(); }},
      {"no linear scaling", qwen2, [](RandomFiles& f) { f.config.rope.divisors.clear(); }},
      {"no yarn divisors", qwen3_yarn, [](RandomFiles& f) { f.config.rope.divisors.clear(); }},
      {"no attention factor", qwen3_yarn,
       [](RandomFiles& f) { f.config.rope.attention_factor = 1; }},
      {"the embedding for lm_head", llama,
       [](RandomFiles& f) { f.config.tie_word_embeddings = true; }},
      {"q's norm for k", qwen3,
       [=](RandomFiles& f) {
         swap_start(tensor(f, "self_attn.q_norm.weight"), tensor(f, "self_attn.k_norm.weight"));
       }},
      {"no q and k norms", qwen3, [](RandomFiles& f) { f.config.qk_norm = false; }},
      {"the AR view's weights in the diffusion view", qwen3,
       [=](RandomFiles& f) {
         tensor(f, "self_attn.q_proj_diff.weight") = tensor(f, "self_attn.q_proj.weight");
       }},
      {"a token's row for the mask embedding", qwen2,
       [](RandomFiles& f) { f.config.mask_token_id = 0; }},
  };
  for (const char* part :
       {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias",
        "self_attn.o_proj.bias", "mlp.gate_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias"}) {
    all.push_back({part, llama, [=](RandomFiles& f) { forget(f, part); }});
  }
  return all;
}

// The tests above would see each of these: a hundred times their tolerance.
TEST(LoadedFormsMistakes, AreSeen) {
  for (const Mistake& mistake : mistakes()) {
    RandomFiles files = mistake.make();
    const std::vector<double> truth = plain(files);
    mistake.apply(files);
    EXPECT_GT(max_difference(plain(files), truth), 1e-2) << mistake.name;
  }
}

}  // namespace
}  // namespace orthrus
