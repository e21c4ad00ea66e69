#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "formats/gguf_keys.h"
#include "formats/hf_config.h"
#include "formats/printable.h"
#include "formats/rope_scaling.h"
#include "formats/tensor_names.h"

namespace orthrus {
namespace {

/// Reads "<architecture>.<key>" of one file.
class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const GgufFile& file)
      : file_(file),
        name_(file.metadata().get<std::string_view>(gguf_key::kArchitecture).value_or("")) {
    if (name_.empty()) fail("{}: no general.architecture", file.path());
  }

  const std::string& name() const { return name_; }
  std::string key(const char* part) const { return name_ + "." + part; }

  std::optional<int64_t> integer(const char* part) const {
    return file_.metadata().get<int64_t>(key(part));
  }
  int64_t required(const char* part) const {
    auto value = integer(part);
    if (!value) fail("{}: no metadata {}", file_.path(), key(part));
    return *value;
  }
  std::optional<double> number(const char* part, double low, double high) const {
    const auto value = file_.metadata().get<double>(key(part));
    if (value && !(*value >= low && *value <= high)) {
      fail("{}: {} is {}, expected {} to {}", file_.path(), key(part), *value, low, high);
    }
    return value;
  }
  double number(const char* part, double fallback, double low, double high) const {
    return number(part, low, high).value_or(fallback);
  }

 private:
  const GgufFile& file_;
  std::string name_;
};

void read_architecture(const ArchitectureKeys& keys, const GgufFile& file, ModelConfig& config) {
  std::optional<Architecture> architecture;
  for (Architecture known : {Architecture::kLlama, Architecture::kQwen2, Architecture::kQwen3}) {
    if (keys.name() == architecture_name(known)) architecture = known;
  }
  if (!architecture) {
    fail("{}: architecture {}, expected llama, qwen2 or qwen3", file.path(),
         printable(keys.name()));
  }
  config.architecture = *architecture;
  config.qk_norm = config.architecture == Architecture::kQwen3;
  // The file tells by its tensors: architectures fix no biases.
  auto has = [&](const char* part) { return file.find(layer_tensor(0, part)) != nullptr; };
  config.attention_bias = has("self_attn.q_proj.bias");
  config.attention_out_bias = has("self_attn.o_proj.bias");
  config.mlp_bias = has("mlp.gate_proj.bias");
  config.tie_word_embeddings = !file.find(kLmHeadName) && file.unreadable_type(kLmHeadName).empty();
}

void read_sizes(const ArchitectureKeys& keys, const GgufFile& file, ModelConfig& config) {
  const TensorInfo* embedding = file.find(kEmbeddingName);
  if (!embedding || embedding->shape.size() != 2) {
    const std::string type = file.unreadable_type(kEmbeddingName);
    if (!type.empty()) {
      fail("{}: tensor token_embd.weight has type {}, which is not supported", file.path(), type);
    }
    fail("{}: no tensor token_embd.weight of two dimensions", file.path());
  }
  config.vocab_size = embedding->shape[0];
  config.hidden_size = keys.required(gguf_key::kEmbeddingLength);
  config.intermediate_size = keys.required(gguf_key::kFeedForwardLength);
  config.num_layers = keys.required(gguf_key::kBlockCount);
  config.num_heads = keys.required(gguf_key::kHeads);
  config.num_kv_heads = keys.integer(gguf_key::kKvHeads).value_or(config.num_heads);
  config.max_position_embeddings = keys.required(gguf_key::kContextLength);
  if (config.num_heads < 1) fail("{}: {} attention heads", file.path(), config.num_heads);
  const auto key_length = keys.integer(gguf_key::kKeyLength);
  if (!key_length && config.hidden_size % config.num_heads != 0) {
    fail("{}: embedding_length {} is not a multiple of {} heads, and there is no key_length",
         file.path(), config.hidden_size, config.num_heads);
  }
  config.head_dim = key_length.value_or(config.hidden_size / config.num_heads);
  for (const char* part : {gguf_key::kValueLength, gguf_key::kRotaryDimensions}) {
    const int64_t value = keys.integer(part).value_or(config.head_dim);
    if (value != config.head_dim) {
      fail("{}: {} is {}, expected the head size {}", file.path(), keys.key(part), value,
           config.head_dim);
    }
  }
  config.rms_norm_eps = keys.number(gguf_key::kNormEpsilon, 1e-6, 0, 1);
}

/// rope_freqs.weight: divisors computed by whoever made the file (Llama 3).
std::vector<float> rope_factors(const GgufFile& file, int64_t head_dim) {
  const std::string unreadable = file.unreadable_type(kRopeFactorsName);
  if (!file.find(kRopeFactorsName) && unreadable.empty()) return {};
  const int64_t shape[] = {head_dim / 2};
  const TensorInfo& tensor = file.require(kRopeFactorsName, shape);
  if (tensor.type != TensorType::kF32) {
    fail("{}: tensor {} has type {}, expected F32", file.path(), kRopeFactorsName,
         traits(tensor.type).name);
  }
  std::vector<float> factors(static_cast<size_t>(head_dim / 2));
  std::copy(tensor.data.begin(), tensor.data.end(),
            std::as_writable_bytes(std::span(factors)).begin());
  for (float factor : factors) {
    if (!(factor > 0 && factor <= 1e6f)) {
      fail("{}: tensor {} holds {}, expected values over 0 and up to 1e6", file.path(),
           kRopeFactorsName, factor);
    }
  }
  return factors;
}

void scale_linearly(double factor, RopeConfig& rope, int64_t head_dim) {
  if (factor == 1) return;
  if (rope.divisors.empty()) rope.divisors.assign(static_cast<size_t>(head_dim / 2), 1.0f);
  for (float& divisor : rope.divisors) divisor *= static_cast<float>(factor);
}

void read_yarn(const ArchitectureKeys& keys, const GgufFile& file, ModelConfig& config) {
  const auto factor = keys.number(gguf_key::kRotaryFactor, 1, kMaxRopeFactor);
  if (!factor) fail("{}: no metadata {}", file.path(), keys.key(gguf_key::kRotaryFactor));
  YarnScaling scaling;
  scaling.factor = *factor;
  scaling.original_context =
      keys.integer(gguf_key::kRotaryOriginalContext).value_or(config.max_position_embeddings);
  scaling.beta_fast = keys.number(gguf_key::kYarnBetaFast, scaling.beta_fast, 0, kMaxRopeFactor);
  scaling.beta_slow = keys.number(gguf_key::kYarnBetaSlow, scaling.beta_slow, 0, kMaxRopeFactor);
  // Below 0 means that it is not set.
  const double extrapolation = keys.number(gguf_key::kYarnExtrapolation, 1, -1e6, 1e6);
  if (extrapolation >= 0 && extrapolation != 1) {
    fail("{}: {} is {}, only 1 is supported", file.path(), keys.key(gguf_key::kYarnExtrapolation),
         extrapolation);
  }
  const double log_multiplier = keys.number(gguf_key::kYarnLogMultiplier, 0, 0, 1000);
  double attention = yarn_attention_factor(*factor);
  if (log_multiplier != 0) attention /= yarn_attention_factor(*factor, log_multiplier);
  attention = keys.number(gguf_key::kYarnAttentionFactor, attention, 1e-3, 1000);
  apply_yarn(scaling, attention, config, file.path());
}

void read_rope(const ArchitectureKeys& keys, const GgufFile& file, ModelConfig& config) {
  config.rope.theta = keys.number(gguf_key::kRotaryBase, 10000.0, 1, 1e12);
  config.rope.divisors = rope_factors(file, config.head_dim);
  const std::string type(
      file.metadata().get<std::string_view>(keys.key(gguf_key::kRotaryScaling)).value_or("none"));
  if (type == "yarn") {
    read_yarn(keys, file, config);
  } else if (type == "none" || type == "linear") {
    // Files from before rope.scaling.* say rope.scale_linear.
    const double old_factor = keys.number("rope.scale_linear", 1, 1, kMaxRopeFactor);
    const double factor = type == "linear"
                              ? keys.number(gguf_key::kRotaryFactor, old_factor, 1, kMaxRopeFactor)
                              : old_factor;
    scale_linearly(factor, config.rope, config.head_dim);
  } else {
    fail("{}: {} is \"{}\", expected none, linear or yarn", file.path(),
         keys.key(gguf_key::kRotaryScaling), printable(type));
  }
  config.rope.attention_factor *= keys.number(gguf_key::kRotaryAttentionFactor, 1, 1e-3, 1000);
}

std::optional<int32_t> token(const GgufFile& file, const char* key, int64_t vocab_size) {
  auto id = file.metadata().get<int64_t>(key);
  if (!id) return std::nullopt;
  if (*id < 0 || *id >= vocab_size) {
    fail("{}: {} is {}, expected 0 to {}", file.path(), key, *id, vocab_size - 1);
  }
  return static_cast<int32_t>(*id);
}

void read_tokens(const GgufFile& file, ModelConfig& config) {
  for (const char* key : gguf_key::kEnds) {
    auto id = token(file, key, config.vocab_size);
    if (!id) continue;
    std::vector<int32_t>& ids = config.eos_token_ids;
    if (std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
  }
  config.bos_token_id = token(file, gguf_key::kBos, config.vocab_size).value_or(-1);
}

void read_orthrus(const GgufFile& file, ModelConfig& config) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (is_diffusion_tensor(tensor.name)) config.is_orthrus = true;
  }
  if (!config.is_orthrus) return;
  auto required = [&](const char* key) {
    auto value = file.metadata().get<int64_t>(key);
    if (!value) fail("{}: diffusion tensors, but no metadata {}", file.path(), key);
    return *value;
  };
  config.block_size = required(gguf_key::kBlockSize);
  const bool embedded = file.find(kMaskEmbeddingName) != nullptr;
  config.mask_token_id = embedded ? -1 : required(gguf_key::kMaskToken);
  check_diffusion_config(config.block_size, embedded ? 0 : config.mask_token_id, config.vocab_size,
                         file.path());
}

/// A file that says how to sample wants to be sampled.
void read_sampling(const GgufFile& file, ModelConfig::SamplingDefaults& sampling) {
  const auto number = [&](const char* key, double low, double high) {
    const auto value = file.metadata().get<double>(key);
    if (value && !(*value >= low && *value <= high)) {
      fail("{}: {} is {}, expected {} to {}", file.path(), key, *value, low, high);
    }
    if (value) sampling.do_sample = true;
    return value;
  };
  sampling.temperature = number(gguf_key::kTemperature, 0, 1000);
  sampling.top_p = number(gguf_key::kTopP, 1e-6, 1);
  sampling.min_p = number(gguf_key::kMinP, 0, 1);
  sampling.repetition_penalty = number(gguf_key::kRepeatPenalty, 1e-3, 1000);
  if (const auto top_k = number(gguf_key::kTopK, INT32_MIN, INT32_MAX)) {
    sampling.top_k = std::max<int64_t>(0, static_cast<int64_t>(*top_k));  // below 0: off
  }
}

}  // namespace

ModelConfig parse_gguf_config(const GgufFile& file) {
  ModelConfig config;
  const ArchitectureKeys keys(file);
  config.name = printable(file.metadata()
                              .get<std::string_view>(gguf_key::kName)
                              .value_or(std::filesystem::path(file.path()).stem().string()));
  read_architecture(keys, file, config);
  read_sizes(keys, file, config);
  check_model_config(config, file.path());
  read_orthrus(file, config);
  read_rope(keys, file, config);
  read_tokens(file, config);
  read_sampling(file, config.sampling);
  config.quantized_from = file.metadata().get<std::string_view>(gguf_key::kBaseHash).value_or("");
  return config;
}

}  // namespace orthrus
