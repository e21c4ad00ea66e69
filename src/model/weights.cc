#include "model/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "base/error.h"
#include "formats/tensor_names.h"
#include "model/convert_tensor.h"
#include "model/head_format.h"
#include "model/weight_packing.h"

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

/// A model has some tensors in several formats: each is recorded by name and format.
std::string recorded_name(std::string_view name, WeightFormat format) {
  static constexpr std::array<std::string_view, 5> kNames = {"auto", "f32", "bf16", "q8", "q4"};
  return fmt::format("{}:{}", name, kNames.at(static_cast<size_t>(format)));
}

/// Packs matrices and reads vectors of one source, dropping the pages of what it has read; or takes
/// them from an earlier load.
class TensorReader {
 public:
  TensorReader(const TensorSource& tensors, const LoadRequest& request, Formats formats,
               Packer& packer, Progress& progress)
      : tensors_(tensors),
        request_(request),
        formats_(formats),
        packer_(packer),
        progress_(progress) {}

  bool makes_twins() const { return formats_.twin.has_value(); }

  PackedMatrix matrix(std::string_view name, int64_t rows, int64_t cols, const Formats& formats,
                      PackedMatrix* twin = nullptr) {
    if (request_.loaded) return loaded_matrix(name, rows, cols, formats, twin);
    PackedMatrix packed = pack_matrix(name, rows, cols, formats, twin);
    if (request_.record) {
      request_.record->add(recorded_name(name, formats.own), packed);
      if (twin && formats.twin && !twin->same_as(packed)) {
        request_.record->add(recorded_name(name, *formats.twin), *twin);
      }
    }
    return packed;
  }

  PackedMatrix matrix(std::string_view name, int64_t rows, int64_t cols,
                      PackedMatrix* twin = nullptr) {
    return matrix(name, rows, cols, formats_, twin);
  }

  std::vector<float> vector(std::string_view name, int64_t size) {
    if (request_.loaded) return request_.loaded->vector(name, size);
    std::vector<float> values = read_vector(tensors_, name, size);
    tensors_.drop(tensors_.require(name, std::array{size}));
    if (request_.record) request_.record->add(name, values);
    return values;
  }

  std::vector<float> optional_vector(bool present, std::string_view name, int64_t size) {
    return present ? vector(name, size) : std::vector<float>();
  }

 private:
  PackedMatrix pack_matrix(std::string_view name, int64_t rows, int64_t cols,
                           const Formats& formats, PackedMatrix* twin) {
    const TensorInfo& info = tensors_.require(name, std::array{rows, cols});
    const std::vector<float> scales = read_row_scales(tensors_, info);
    PackedMatrix packed = packer_.pack(matrix_source(info, scales), formats, twin);
    tensors_.drop(info);
    progress_.add(info.data.size());
    return packed;
  }

  PackedMatrix loaded_matrix(std::string_view name, int64_t rows, int64_t cols,
                             const Formats& formats, PackedMatrix* twin) const {
    const LoadedTensors& loaded = *request_.loaded;
    PackedMatrix packed = loaded.matrix(recorded_name(name, formats.own), rows, cols);
    if (twin && formats.twin) {
      const std::string twin_name = recorded_name(name, *formats.twin);
      *twin = loaded.has_matrix(twin_name) ? loaded.matrix(twin_name, rows, cols) : packed;
    }
    return packed;
  }

  const TensorSource& tensors_;
  const LoadRequest& request_;
  const Formats formats_;
  Packer& packer_;
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
  make_mlp(w, reader.makes_twins(), [&](auto member, PackedMatrix* twin) {
    if (member == &MlpWeights::down_proj) {
      return reader.matrix(name("mlp.down_proj.weight"), c.hidden_size, c.intermediate_size, twin);
    }
    const bool gate = member == &MlpWeights::gate_proj;
    return reader.matrix(name(gate ? "mlp.gate_proj.weight" : "mlp.up_proj.weight"),
                         c.intermediate_size, c.hidden_size, twin);
  });
  MlpWeights& mlp = w.mlp;
  mlp.gate_bias =
      reader.optional_vector(c.mlp_bias, name("mlp.gate_proj.bias"), c.intermediate_size);
  mlp.up_bias = reader.optional_vector(c.mlp_bias, name("mlp.up_proj.bias"), c.intermediate_size);
  mlp.down_bias = reader.optional_vector(c.mlp_bias, name("mlp.down_proj.bias"), c.hidden_size);
  return w;
}

/// The diffusion view has no biases of its own: it uses those of the AR view.
void share_biases(LayerWeights& layer) {
  layer.diff->q_bias = layer.ar.q_bias;
  layer.diff->k_bias = layer.ar.k_bias;
  layer.diff->v_bias = layer.ar.v_bias;
  layer.diff->o_bias = layer.ar.o_bias;
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
                         Packer& packer, Progress& progress) {
  using Diffusion = LoadRequest::Diffusion;
  if (request.diffusion == Diffusion::kNone) return;
  const bool from_adapter = request.diffusion == Diffusion::kAdapter;
  const TensorSource& tensors = from_adapter ? *request.adapter->tensors : *checkpoint.tensors;
  const WeightFormat format = request.draft_format.value_or(request.format);
  TensorReader reader(tensors, request, {format, std::nullopt}, packer, progress);
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

size_t bytes_of(const MlpWeights& w) {
  return w.gate_proj.bytes() + w.up_proj.bytes() + w.down_proj.bytes();
}

/// What a twin takes beside the original.
size_t extra_bytes(const PackedMatrix& twin, const PackedMatrix& original) {
  return twin.shares_memory(original) ? 0 : twin.bytes();
}

size_t extra_bytes(const MlpWeights& twin, const MlpWeights& original) {
  return extra_bytes(twin.gate_proj, original.gate_proj) +
         extra_bytes(twin.up_proj, original.up_proj) +
         extra_bytes(twin.down_proj, original.down_proj);
}

/// What all matrices of a load take of an arena.
size_t arena_bytes(const Checkpoint& checkpoint, const LoadRequest& request,
                   const Formats& formats) {
  using Diffusion = LoadRequest::Diffusion;
  const ModelConfig& config = checkpoint.config;
  const Formats diffusion{request.draft_format.value_or(request.format), std::nullopt};
  ArenaSize size;
  const auto add = [&](const TensorSource& tensors, const std::string& name, const Formats& as) {
    if (const TensorInfo* info = tensors.find(name)) size.add(*info, as);
  };
  const std::vector<TensorSpec> twinned = twinned_tensors(config);
  for (const TensorSpec& spec : ar_tensors(config)) {
    const bool has_twin = std::any_of(twinned.begin(), twinned.end(),
                                      [&](const TensorSpec& t) { return t.name == spec.name; });
    add(*checkpoint.tensors, spec.name, has_twin ? formats : Formats{formats.own, std::nullopt});
    const bool attention = spec.name.find(".self_attn.") != std::string::npos;
    if (request.diffusion == Diffusion::kCopy && attention) {
      add(*checkpoint.tensors, spec.name, diffusion);
    }
  }
  if (request.diffusion == Diffusion::kCheckpoint || request.diffusion == Diffusion::kAdapter) {
    const bool from_adapter = request.diffusion == Diffusion::kAdapter;
    const TensorSource& tensors = from_adapter ? *request.adapter->tensors : *checkpoint.tensors;
    for (const TensorSpec& spec : diffusion_tensors(config)) add(tensors, spec.name, diffusion);
  }
  return size.bytes();
}

size_t bytes_of(const AttentionWeights& w) {
  return w.q_proj.bytes() + w.k_proj.bytes() + w.v_proj.bytes() + w.o_proj.bytes() +
         4 * (w.q_norm.size() + w.k_norm.size());
}

}  // namespace

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

Model load_model(const Checkpoint& checkpoint, const LoadRequest& request, ThreadPool& pool) {
  Model model;
  model.config = checkpoint.config;
  const ModelConfig& c = model.config;
  size_t total = source_bytes(*checkpoint.tensors);
  if (request.adapter) total += source_bytes(*request.adapter->tensors);
  Progress progress(request.progress, total);
  Formats formats{request.format, std::nullopt};
  if (request.diffusion != LoadRequest::Diffusion::kNone) formats.twin = request.draft_format;
  Packer packer(pool, arena_bytes(checkpoint, request, formats));
  TensorReader reader(*checkpoint.tensors, request, formats, packer, progress);

  const Formats head = formats.of_head();
  if (!c.tie_word_embeddings) {
    model.embedding = reader.matrix(kEmbeddingName, c.vocab_size, c.hidden_size, head);
  }
  make_head(model, formats.twin.has_value(), [&](PackedMatrix* twin) {
    const std::string_view name = c.tie_word_embeddings ? kEmbeddingName : kLmHeadName;
    return reader.matrix(name, c.vocab_size, c.hidden_size, head, twin);
  });
  for (int64_t i = 0; i < c.num_layers; ++i) model.layers.push_back(read_layer(reader, c, i));
  model.final_norm = reader.vector(kFinalNormName, c.hidden_size);
  model.rope_inv_freq = inverse_frequencies(c);
  read_diffusion_view(model, checkpoint, request, packer, progress);
  model.mapped = request.loaded != nullptr;
  if (request.progress) request.progress(1.0);
  return model;
}

size_t Model::diffusion_bytes() const {
  size_t total = 4 * mask_embedding.size();
  for (const LayerWeights& layer : layers) {
    if (layer.diff) total += bytes_of(*layer.diff);
    if (layer.draft_mlp) total += extra_bytes(*layer.draft_mlp, layer.mlp);
  }
  if (draft_lm_head) total += extra_bytes(*draft_lm_head, lm_head);
  return total;
}

size_t Model::weight_bytes() const {
  size_t total = diffusion_bytes() + lm_head.bytes() + 4 * final_norm.size();
  if (embedding) total += embedding->bytes();
  for (const LayerWeights& layer : layers) {
    total += bytes_of(layer.ar) + bytes_of(layer.mlp) +
             4 * (layer.input_norm.size() + layer.post_attention_norm.size());
  }
  return total;
}

}  // namespace orthrus
