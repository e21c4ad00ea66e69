#include <algorithm>

#include "formats/tensor_names.h"
#include "model/weight_packing.h"

namespace orthrus {
namespace {

/// bf16 values of about +-0.03 from a counter hash: cheap, and the same on every run.
class RandomMatrices {
 public:
  RandomMatrices(int64_t largest, Packer& packer, ThreadPool& pool)
      : packer_(packer), values_(static_cast<size_t>(largest) * sizeof(uint16_t)) {
    auto* out = values_.as<uint16_t>();
    pool.parallel_for(largest, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        uint64_t hash = static_cast<uint64_t>(i + 1) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
        hash *= 0xBF58476D1CE4E5B9u;
        // Sign and mantissa at random, exponent 2^-6 or 2^-7.
        out[i] = static_cast<uint16_t>(((hash >> 40) & 0x807fu) |
                                       (((hash >> 20) & 1u) ? 0x3c80u : 0x3c00u));
      }
    });
  }
  PackedMatrix next(int64_t rows, int64_t cols, const Formats& formats,
                    PackedMatrix* twin = nullptr) {
    const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(uint16_t);
    return packer_.pack({TensorType::kBF16, {values_.data(), bytes}, rows, cols, 0, {}}, formats,
                        twin);
  }

 private:
  Packer& packer_;
  AlignedBuffer values_;
};

AttentionWeights random_attention(RandomMatrices& random, const ModelConfig& c,
                                  const Formats& format) {
  const int64_t q_size = c.num_heads * c.head_dim;
  const int64_t kv_size = c.num_kv_heads * c.head_dim;
  AttentionWeights w;
  w.q_proj = random.next(q_size, c.hidden_size, format);
  w.k_proj = random.next(kv_size, c.hidden_size, format);
  w.v_proj = random.next(kv_size, c.hidden_size, format);
  w.o_proj = random.next(c.hidden_size, q_size, format);
  if (c.qk_norm) {
    w.q_norm.assign(static_cast<size_t>(c.head_dim), 1.0f);
    w.k_norm = w.q_norm;
  }
  return w;
}

}  // namespace

Model random_model(const ModelConfig& config, WeightFormat format, ThreadPool& pool,
                   std::optional<WeightFormat> draft_format) {
  Model model;
  model.config = config;
  const ModelConfig& c = config;
  const Formats formats{format, draft_format};
  const Formats drafts{draft_format.value_or(format), std::nullopt};
  const Formats head = formats.of_head();
  ArenaSize size;
  for (const TensorSpec& spec : ar_tensors(c)) {
    size.add({spec.name, TensorType::kBF16, spec.shape, {}, 0}, formats);
  }
  for (const TensorSpec& spec : diffusion_tensors(c)) {
    size.add({spec.name, TensorType::kBF16, spec.shape, {}, 0}, drafts);
  }
  Packer packer(pool, size.bytes());
  RandomMatrices random(
      c.hidden_size * std::max({c.vocab_size, c.intermediate_size, c.num_heads * c.head_dim}),
      packer, pool);
  make_head(model, formats.twin.has_value(), [&](PackedMatrix* twin) {
    return random.next(c.vocab_size, c.hidden_size, head, twin);
  });
  if (!c.tie_word_embeddings) {
    model.embedding = random.next(c.vocab_size, c.hidden_size, head);
  }
  const std::vector<float> ones(static_cast<size_t>(c.hidden_size), 1.0f);
  for (int64_t i = 0; i < c.num_layers; ++i) {
    LayerWeights w;
    w.input_norm = ones;
    w.ar = random_attention(random, c, formats);
    w.diff = random_attention(random, c, drafts);
    w.post_attention_norm = ones;
    make_mlp(w, formats.twin.has_value(), [&](auto member, PackedMatrix* twin) {
      const bool down = member == &MlpWeights::down_proj;
      return random.next(down ? c.hidden_size : c.intermediate_size,
                         down ? c.intermediate_size : c.hidden_size, formats, twin);
    });
    model.layers.push_back(std::move(w));
  }
  model.final_norm = ones;
  model.mask_embedding.assign(ones.size(), 0.01f);
  model.config.block_size = kCopyBlockSize;
  model.rope_inv_freq = inverse_frequencies(c);
  return model;
}

}  // namespace orthrus
