#include "model/weights.h"

#include <array>
#include <cmath>
#include <random>

#include "base/error.h"
#include "formats/tensor_names.h"
#include "model/convert_tensor.h"
#include "model/head_format.h"

namespace orthrus {
namespace {

/// Counts packed tensors towards the whole and reports the share done.
class Progress {
 public:
  Progress(const std::function<void(double)>& report, size_t total_bytes)
      : report_(report), total_(static_cast<double>(total_bytes)) {}
  void add(size_t bytes) {
    done_ += static_cast<double>(bytes);
    if (report_ && total_ > 0) report_(std::min(1.0, done_ / total_));
  }

 private:
  const std::function<void(double)>& report_;
  double total_;
  double done_ = 0;
};

/// Packs matrices and reads vectors of one source, dropping the pages of what it has read.
class TensorReader {
 public:
  TensorReader(const TensorSource& tensors, WeightFormat format, ThreadPool& pool,
               WeightArena& arena, Progress& progress)
      : tensors_(tensors), format_(format), pool_(pool), arena_(arena), progress_(progress) {}

  PackedMatrix matrix(std::string_view name, int64_t rows, int64_t cols, WeightFormat format) {
    const TensorInfo& info = tensors_.require(name, std::array{rows, cols});
    MatrixSource source{info.type, info.data, rows, cols, info.interleaved_heads, {}};
    const std::vector<float> scales = read_row_scales(tensors_, info);
    source.row_scales = scales;
    PackedMatrix packed = pack(source, format, pool_, &arena_);
    tensors_.drop(info);
    progress_.add(info.data.size());
    return packed;
  }

  PackedMatrix matrix(std::string_view name, int64_t rows, int64_t cols) {
    return matrix(name, rows, cols, format_);
  }

  std::vector<float> vector(std::string_view name, int64_t size) {
    return read_vector(tensors_, name, size);
  }

  std::vector<float> optional_vector(bool present, std::string_view name, int64_t size) {
    return present ? vector(name, size) : std::vector<float>();
  }

 private:
  const TensorSource& tensors_;
  WeightFormat format_;
  ThreadPool& pool_;
  WeightArena& arena_;
  Progress& progress_;
};

/// suffix: "" for the AR view, "_diff" for the diffusion view.
AttentionWeights read_attention(TensorReader& reader, const ModelConfig& c, int64_t layer,
                                std::string_view suffix) {
  const auto name = [&](std::string_view part) {
    return layer_tensor(layer, fmt::format("self_attn.{}{}.weight", part, suffix));
  };
  const auto bias = [&](std::string_view part) {
    return layer_tensor(layer, fmt::format("self_attn.{}.bias", part));
  };
  const int64_t q_size = c.num_heads * c.head_dim;
  const int64_t kv_size = c.num_kv_heads * c.head_dim;
  AttentionWeights w;
  w.q_proj = reader.matrix(name("q_proj"), q_size, c.hidden_size);
  w.k_proj = reader.matrix(name("k_proj"), kv_size, c.hidden_size);
  w.v_proj = reader.matrix(name("v_proj"), kv_size, c.hidden_size);
  w.o_proj = reader.matrix(name("o_proj"), c.hidden_size, q_size);
  w.q_norm = reader.optional_vector(c.qk_norm, name("q_norm"), c.head_dim);
  w.k_norm = reader.optional_vector(c.qk_norm, name("k_norm"), c.head_dim);
  if (suffix.empty()) {
    w.q_bias = reader.optional_vector(c.attention_bias, bias("q_proj"), q_size);
    w.k_bias = reader.optional_vector(c.attention_bias, bias("k_proj"), kv_size);
    w.v_bias = reader.optional_vector(c.attention_bias, bias("v_proj"), kv_size);
    w.o_bias = reader.optional_vector(c.attention_out_bias, bias("o_proj"), c.hidden_size);
  }
  return w;
}

LayerWeights read_layer(TensorReader& reader, const ModelConfig& c, int64_t layer) {
  const auto name = [&](std::string_view part) { return layer_tensor(layer, part); };
  LayerWeights w;
  w.input_norm = reader.vector(name("input_layernorm.weight"), c.hidden_size);
  w.ar = read_attention(reader, c, layer, "");
  w.post_attention_norm = reader.vector(name("post_attention_layernorm.weight"), c.hidden_size);
  w.gate_proj = reader.matrix(name("mlp.gate_proj.weight"), c.intermediate_size, c.hidden_size);
  w.up_proj = reader.matrix(name("mlp.up_proj.weight"), c.intermediate_size, c.hidden_size);
  w.down_proj = reader.matrix(name("mlp.down_proj.weight"), c.hidden_size, c.intermediate_size);
  w.gate_bias = reader.optional_vector(c.mlp_bias, name("mlp.gate_proj.bias"), c.intermediate_size);
  w.up_bias = reader.optional_vector(c.mlp_bias, name("mlp.up_proj.bias"), c.intermediate_size);
  w.down_bias = reader.optional_vector(c.mlp_bias, name("mlp.down_proj.bias"), c.hidden_size);
  return w;
}

/// The diffusion view has no biases of its own: it uses those of the AR view.
void share_biases(LayerWeights& layer) {
  layer.diff->q_bias = layer.ar.q_bias;
  layer.diff->k_bias = layer.ar.k_bias;
  layer.diff->v_bias = layer.ar.v_bias;
  layer.diff->o_bias = layer.ar.o_bias;
}

/// HF computes these in float32, and so does this, that long positions agree.
std::vector<float> inverse_frequencies(const ModelConfig& c) {
  std::vector<float> result(static_cast<size_t>(c.head_dim / 2));
  for (size_t i = 0; i < result.size(); ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(c.head_dim);
    const float power = static_cast<float>(std::pow(c.rope.theta, static_cast<double>(exponent)));
    result[i] = 1.0f / power;
    if (!c.rope.divisors.empty()) result[i] /= c.rope.divisors[i];
  }
  return result;
}

/// The mean of all embedding rows: near every token and equal to none.
std::vector<float> mean_embedding(const PackedMatrix& embedding) {
  std::vector<double> sum(static_cast<size_t>(embedding.cols()), 0.0);
  std::vector<float> row(sum.size());
  for (int64_t r = 0; r < embedding.rows(); ++r) {
    unpack_row(embedding, r, row.data());
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += static_cast<double>(row[i]);
  }
  for (size_t i = 0; i < sum.size(); ++i) {
    row[i] = static_cast<float>(sum[i] / static_cast<double>(embedding.rows()));
  }
  return row;
}

void read_diffusion_view(Model& model, const Checkpoint& checkpoint, const LoadRequest& request,
                         ThreadPool& pool, WeightArena& arena, Progress& progress) {
  using Diffusion = LoadRequest::Diffusion;
  if (request.diffusion == Diffusion::kNone) return;
  const bool from_adapter = request.diffusion == Diffusion::kAdapter;
  const TensorSource& tensors = from_adapter ? *request.adapter->tensors : *checkpoint.tensors;
  TensorReader reader(tensors, request.format, pool, arena, progress);
  const std::string_view suffix = request.diffusion == Diffusion::kCopy ? "" : "_diff";
  for (size_t i = 0; i < model.layers.size(); ++i) {
    model.layers[i].diff = read_attention(reader, model.config, static_cast<int64_t>(i), suffix);
    share_biases(model.layers[i]);
  }
  if (request.diffusion == Diffusion::kCopy) {
    model.config.block_size = kCopyBlockSize;
    model.config.mask_token_id = -1;
    model.mask_embedding = mean_embedding(model.embedding_matrix());
  } else if (from_adapter) {
    model.config.block_size = request.adapter->block_size;
    model.config.mask_token_id = request.adapter->mask_token_id;
  }
  if (request.diffusion != Diffusion::kCopy && model.config.mask_token_id < 0) {
    model.mask_embedding = reader.vector(kMaskEmbeddingName, model.config.hidden_size);
  }
}

size_t source_bytes(const TensorSource& tensors) {
  size_t total = 0;
  for (const TensorInfo& info : tensors.tensors()) total += info.data.size();
  return total;
}

size_t bytes_of(const AttentionWeights& w) {
  return w.q_proj.bytes() + w.k_proj.bytes() + w.v_proj.bytes() + w.o_proj.bytes() +
         4 * (w.q_norm.size() + w.k_norm.size());
}

}  // namespace

Model load_model(const Checkpoint& checkpoint, const LoadRequest& request, ThreadPool& pool) {
  Model model;
  model.config = checkpoint.config;
  const ModelConfig& c = model.config;
  size_t total = source_bytes(*checkpoint.tensors);
  if (request.adapter) total += source_bytes(*request.adapter->tensors);
  Progress progress(request.progress, total);
  WeightArena arena;
  TensorReader reader(*checkpoint.tensors, request.format, pool, arena, progress);

  const WeightFormat head = head_format(request.format);
  if (c.tie_word_embeddings) {
    model.lm_head = reader.matrix(kEmbeddingName, c.vocab_size, c.hidden_size, head);
  } else {
    model.embedding = reader.matrix(kEmbeddingName, c.vocab_size, c.hidden_size, head);
    model.lm_head = reader.matrix(kLmHeadName, c.vocab_size, c.hidden_size, head);
  }
  for (int64_t i = 0; i < c.num_layers; ++i) model.layers.push_back(read_layer(reader, c, i));
  model.final_norm = reader.vector(kFinalNormName, c.hidden_size);
  model.rope_inv_freq = inverse_frequencies(c);
  read_diffusion_view(model, checkpoint, request, pool, arena, progress);
  if (request.progress) request.progress(1.0);
  return model;
}

namespace {

/// bf16 values of about +-0.03 from a counter hash: cheap, and the same on every run.
class RandomMatrices {
 public:
  RandomMatrices(int64_t largest, WeightFormat format, ThreadPool& pool)
      : format_(format), pool_(pool), values_(static_cast<size_t>(largest) * sizeof(uint16_t)) {
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
  PackedMatrix next(int64_t rows, int64_t cols, WeightFormat format) {
    const size_t bytes = static_cast<size_t>(rows * cols) * sizeof(uint16_t);
    return pack({TensorType::kBF16, {values_.data(), bytes}, rows, cols, 0, {}}, format, pool_,
                &arena_);
  }
  PackedMatrix next(int64_t rows, int64_t cols) { return next(rows, cols, format_); }

 private:
  WeightFormat format_;
  ThreadPool& pool_;
  WeightArena arena_;
  AlignedBuffer values_;
};

AttentionWeights random_attention(RandomMatrices& random, const ModelConfig& c) {
  const int64_t q_size = c.num_heads * c.head_dim;
  const int64_t kv_size = c.num_kv_heads * c.head_dim;
  AttentionWeights w;
  w.q_proj = random.next(q_size, c.hidden_size);
  w.k_proj = random.next(kv_size, c.hidden_size);
  w.v_proj = random.next(kv_size, c.hidden_size);
  w.o_proj = random.next(c.hidden_size, q_size);
  if (c.qk_norm) {
    w.q_norm.assign(static_cast<size_t>(c.head_dim), 1.0f);
    w.k_norm = w.q_norm;
  }
  return w;
}

}  // namespace

Model random_model(const ModelConfig& config, WeightFormat format, ThreadPool& pool) {
  Model model;
  model.config = config;
  const ModelConfig& c = config;
  RandomMatrices random(
      c.hidden_size * std::max({c.vocab_size, c.intermediate_size, c.num_heads * c.head_dim}),
      format, pool);
  model.lm_head = random.next(c.vocab_size, c.hidden_size, head_format(format));
  if (!c.tie_word_embeddings) {
    model.embedding = random.next(c.vocab_size, c.hidden_size, head_format(format));
  }
  const std::vector<float> ones(static_cast<size_t>(c.hidden_size), 1.0f);
  for (int64_t i = 0; i < c.num_layers; ++i) {
    LayerWeights w;
    w.input_norm = ones;
    w.ar = random_attention(random, c);
    w.diff = random_attention(random, c);
    w.post_attention_norm = ones;
    w.gate_proj = random.next(c.intermediate_size, c.hidden_size);
    w.up_proj = random.next(c.intermediate_size, c.hidden_size);
    w.down_proj = random.next(c.hidden_size, c.intermediate_size);
    model.layers.push_back(std::move(w));
  }
  model.final_norm = ones;
  model.mask_embedding.assign(ones.size(), 0.01f);
  model.config.block_size = kCopyBlockSize;
  model.rope_inv_freq = inverse_frequencies(c);
  return model;
}

size_t Model::diffusion_bytes() const {
  size_t total = 4 * mask_embedding.size();
  for (const LayerWeights& layer : layers) {
    if (layer.diff) total += bytes_of(*layer.diff);
  }
  return total;
}

size_t Model::weight_bytes() const {
  size_t total = diffusion_bytes() + lm_head.bytes() + 4 * final_norm.size();
  if (embedding) total += embedding->bytes();
  for (const LayerWeights& layer : layers) {
    total += bytes_of(layer.ar) + layer.gate_proj.bytes() + layer.up_proj.bytes() +
             layer.down_proj.bytes() +
             4 * (layer.input_norm.size() + layer.post_attention_norm.size());
  }
  return total;
}

}  // namespace orthrus
