#include "formats/hf_config.h"

#include <cmath>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "formats/rope_scaling.h"

namespace orthrus {
namespace {

using nlohmann::json;

/// A JSON object with typed, range-checked reads. A null counts as absent, as in transformers.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail("{}: not a JSON object", where_);
  }

  const json* find(const char* key) const {
    auto it = object_.find(key);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  std::optional<int64_t> integer(const char* key) const {
    const json* value = find(key);
    return value ? std::optional(integer_of(*value, key)) : std::nullopt;
  }

  int64_t required(const char* key) const {
    if (!find(key)) fail("{}: no \"{}\"", where_, key);
    return *integer(key);
  }

  /// A number with low <= value <= high.
  std::optional<double> number(const char* key, double low, double high) const {
    const json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_number()) fail("{}: \"{}\" is not a number", where_, key);
    const double number = value->get<double>();
    if (!(number >= low && number <= high)) {
      fail("{}: \"{}\" is {}, expected {} to {}", where_, key, number, low, high);
    }
    return number;
  }

  std::optional<bool> boolean(const char* key) const {
    const json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_boolean()) fail("{}: \"{}\" is not true or false", where_, key);
    return value->get<bool>();
  }

  std::optional<std::string> text(const char* key) const {
    const json* value = find(key);
    if (!value) return std::nullopt;
    if (!value->is_string()) fail("{}: \"{}\" is not a string", where_, key);
    return value->get<std::string>();
  }

  /// One id or a list of ids.
  std::vector<int64_t> ids(const char* key) const {
    constexpr size_t kMaxIds = 64;
    std::vector<int64_t> ids;
    const json* value = find(key);
    if (!value) return ids;
    if (!value->is_array()) return {integer_of(*value, key)};
    if (value->size() > kMaxIds) {
      fail("{}: \"{}\" has {} ids, expected at most {}", where_, key, value->size(), kMaxIds);
    }
    for (const json& id : *value) ids.push_back(integer_of(id, key));
    return ids;
  }

  const std::string& where() const { return where_; }

 private:
  int64_t integer_of(const json& value, const char* key) const {
    const bool fits =
        value.is_number_unsigned() ? value.get<uint64_t>() <= INT64_MAX : value.is_number_integer();
    if (!fits) fail("{}: \"{}\" is not a whole number", where_, key);
    return value.get<int64_t>();
  }

  const json& object_;
  std::string where_;
};

bool names_orthrus(const Fields& fields) {
  const json* list = fields.find("architectures");
  if (!list || !list->is_array()) return false;
  for (const json& name : *list) {
    if (name == "OrthrusLM") return true;
  }
  return false;
}

void read_architecture(const Fields& fields, ModelConfig& config) {
  const std::string type = fields.text("model_type").value_or("");
  // Some exports keep the base's architecture name: the two keys say the same.
  config.is_orthrus = type == "orthrus" || names_orthrus(fields) ||
                      (fields.find("block_size") && fields.find("mask_token_id"));
  if (type == "qwen3" || type == "orthrus") {
    config.architecture = Architecture::kQwen3;
    config.qk_norm = true;
  } else if (type == "qwen2") {
    config.architecture = Architecture::kQwen2;
  } else if (type == "llama") {
    config.architecture = Architecture::kLlama;
  } else {
    fail("{}: model_type is \"{}\", expected orthrus, qwen3, qwen2 or llama", fields.where(),
         printable(type));
  }
}

void read_sizes(const Fields& fields, ModelConfig& config) {
  config.vocab_size = fields.required("vocab_size");
  config.hidden_size = fields.required("hidden_size");
  config.intermediate_size = fields.required("intermediate_size");
  config.num_layers = fields.required("num_hidden_layers");
  config.num_heads = fields.required("num_attention_heads");
  config.num_kv_heads = fields.integer("num_key_value_heads").value_or(config.num_heads);
  config.max_position_embeddings = fields.required("max_position_embeddings");
  if (auto head_dim = fields.integer("head_dim")) {
    config.head_dim = *head_dim;
  } else {
    if (config.num_heads < 1 || config.hidden_size % config.num_heads != 0) {
      fail(
          "{}: hidden_size {} is not a multiple of num_attention_heads {}, and there is no "
          "head_dim",
          fields.where(), config.hidden_size, config.num_heads);
    }
    config.head_dim = config.hidden_size / config.num_heads;
  }
  config.rms_norm_eps = fields.number("rms_norm_eps", 0, 1).value_or(1e-6);
}

void read_biases(const Fields& fields, ModelConfig& config) {
  const bool attention = fields.boolean("attention_bias").value_or(false);
  const bool qwen2 = config.architecture == Architecture::kQwen2;
  config.attention_bias = qwen2 || attention;
  config.attention_out_bias = !qwen2 && attention;
  config.mlp_bias = fields.boolean("mlp_bias").value_or(false);
}

void refuse_unsupported(const Fields& fields) {
  if (fields.boolean("use_sliding_window").value_or(false)) {
    fail("{}: use_sliding_window is true, sliding windows are not supported", fields.where());
  }
  const std::string activation = fields.text("hidden_act").value_or("silu");
  if (activation != "silu") {
    fail("{}: hidden_act is \"{}\", expected silu", fields.where(), printable(activation));
  }
  if (fields.find("quantization_config")) {
    fail("{}: quantization_config: quantised Hugging Face checkpoints are not supported",
         fields.where());
  }
}

/// As `_compute_yarn_parameters` of transformers reads them: 0 counts as absent where it says `or`.
void read_yarn(const Fields& rope, ModelConfig& config) {
  YarnScaling scaling;
  const auto original = rope.integer("original_max_position_embeddings");
  scaling.original_context = original.value_or(config.max_position_embeddings);
  auto factor = rope.number("factor", 1, kMaxRopeFactor);
  if (!factor && original) {
    factor = static_cast<double>(config.max_position_embeddings) / static_cast<double>(*original);
  }
  if (!factor) fail("{}: no \"factor\"", rope.where());
  scaling.factor = *factor;
  const auto or_default = [&](const char* key, double& value) {
    const double given = rope.number(key, 0, kMaxRopeFactor).value_or(0);
    if (given != 0) value = given;
  };
  or_default("beta_fast", scaling.beta_fast);
  or_default("beta_slow", scaling.beta_slow);
  scaling.truncate = rope.boolean("truncate").value_or(true);
  double mscale = 0, mscale_all = 0;
  or_default("mscale", mscale);
  or_default("mscale_all_dim", mscale_all);
  double attention = yarn_attention_factor(*factor);
  if (mscale != 0 && mscale_all != 0) {
    attention = yarn_attention_factor(*factor, mscale) / yarn_attention_factor(*factor, mscale_all);
  }
  const auto given = rope.number("attention_factor", 1e-3, 1000);
  apply_yarn(scaling, given.value_or(attention), config, rope.where());
}

/// `rope_parameters` (theta inside), or the older `rope_scaling` beside a top-level `rope_theta`.
/// Of both the latter counts, as in transformers: a person has added it.
void read_rope(const Fields& fields, ModelConfig& config) {
  const json empty = json::object();
  const auto member = [&](const char* name) {
    const json* object = fields.find(name);
    return Fields(object ? *object : empty, fields.where() + ": " + name);
  };
  const Fields modern = member("rope_parameters"), older = member("rope_scaling");
  const Fields& rope = fields.find("rope_scaling") ? older : modern;
  auto theta = rope.number("rope_theta", 1, 1e12);
  if (!theta) theta = modern.number("rope_theta", 1, 1e12);
  if (!theta) theta = fields.number("rope_theta", 1, 1e12);
  config.rope.theta = theta.value_or(10000.0);
  for (const Fields* part : {&fields, &rope}) {
    if (part->number("partial_rotary_factor", 0, 1).value_or(1) != 1) {
      fail("{}: partial_rotary_factor is not 1, which is not supported", part->where());
    }
  }
  auto type = rope.text("rope_type");
  if (!type) type = rope.text("type");
  if (!type || *type == "default") return;
  if (*type == "yarn") return read_yarn(rope, config);
  const size_t pairs = static_cast<size_t>(config.head_dim / 2);
  const double factor = rope.number("factor", 1, kMaxRopeFactor).value_or(1);
  if (*type == "linear") {
    config.rope.divisors.assign(pairs, static_cast<float>(factor));
  } else if (*type == "llama3") {
    Llama3Scaling scaling;
    scaling.factor = factor;
    scaling.low_freq_factor = rope.number("low_freq_factor", 1e-3, kMaxRopeFactor).value_or(1);
    scaling.high_freq_factor = rope.number("high_freq_factor", 1e-3, kMaxRopeFactor).value_or(4);
    scaling.original_context = rope.number("original_max_position_embeddings", 1, 1e9)
                                   .value_or(static_cast<double>(config.max_position_embeddings));
    if (scaling.high_freq_factor <= scaling.low_freq_factor) {
      fail("{}: high_freq_factor {} is not above low_freq_factor {}", rope.where(),
           scaling.high_freq_factor, scaling.low_freq_factor);
    }
    config.rope.divisors = llama3_divisors(scaling, config.rope.theta, config.head_dim);
  } else {
    fail("{}: type \"{}\" is not supported, expected default, linear, llama3 or yarn", rope.where(),
         printable(*type));
  }
}

int32_t token_id(int64_t id, const char* key, const std::string& where, int64_t vocab_size) {
  if (id < 0 || id >= vocab_size) {
    fail("{}: {} is {}, expected 0 to {}", where, key, id, vocab_size - 1);
  }
  return static_cast<int32_t>(id);
}

void set_eos(const Fields& fields, ModelConfig& config) {
  std::vector<int64_t> ids = fields.ids("eos_token_id");
  if (ids.empty()) return;
  config.eos_token_ids.clear();
  for (int64_t id : ids) {
    config.eos_token_ids.push_back(token_id(id, "eos_token_id", fields.where(), config.vocab_size));
  }
}

void read_generation(const Fields& fields, ModelConfig& config) {
  set_eos(fields, config);
  ModelConfig::SamplingDefaults& sampling = config.sampling;
  sampling.do_sample = fields.boolean("do_sample").value_or(false);
  sampling.temperature = fields.number("temperature", 0, 1000);
  sampling.top_p = fields.number("top_p", 1e-6, 1);
  sampling.min_p = fields.number("min_p", 0, 1);
  sampling.repetition_penalty = fields.number("repetition_penalty", 1e-3, 1000);
  sampling.top_k = fields.integer("top_k");
  if (sampling.top_k && *sampling.top_k < 0) {
    fail("{}: \"top_k\" is {}, expected 0 or more", fields.where(), *sampling.top_k);
  }
}

}  // namespace

ModelConfig parse_hf_config(const HfConfigFiles& files) {
  const std::string config_path = files.directory + "/config.json";
  const json root = parse_json(files.config, config_path);
  const Fields fields(root, config_path);
  ModelConfig config;
  config.name = std::filesystem::path(files.directory).filename().string();
  read_architecture(fields, config);
  refuse_unsupported(fields);
  read_sizes(fields, config);
  read_biases(fields, config);
  check_model_config(config, config_path);  // before sizes are used
  read_rope(fields, config);
  config.tie_word_embeddings = fields.boolean("tie_word_embeddings").value_or(!files.has_lm_head);
  if (config.is_orthrus) {
    config.block_size = fields.required("block_size");
    config.mask_token_id = fields.required("mask_token_id");
    check_diffusion_config(config.block_size, config.mask_token_id, config.vocab_size, config_path);
  }
  std::vector<int64_t> bos = fields.ids("bos_token_id");
  if (!bos.empty()) {
    config.bos_token_id = token_id(bos[0], "bos_token_id", config_path, config.vocab_size);
  }
  set_eos(fields, config);
  if (!files.generation.empty()) {
    const std::string path = files.directory + "/generation_config.json";
    const json generation = parse_json(files.generation, path);
    read_generation(Fields(generation, path), config);
  }
  return config;
}

void check_model_config(const ModelConfig& config, const std::string& where) {
  auto check = [&](const char* name, int64_t value, int64_t high) {
    if (value < 1 || value > high) fail("{}: {} is {}, expected 1 to {}", where, name, value, high);
  };
  check("vocab_size", config.vocab_size, 1 << 24);
  check("hidden_size", config.hidden_size, 1 << 20);
  check("intermediate_size", config.intermediate_size, 1 << 22);
  check("the number of layers", config.num_layers, 1 << 12);
  check("the number of attention heads", config.num_heads, 1 << 12);
  check("the number of key-value heads", config.num_kv_heads, config.num_heads);
  check("head_dim", config.head_dim, 1 << 10);
  check("max_position_embeddings", config.max_position_embeddings, int64_t{1} << 30);
  if (config.num_heads % config.num_kv_heads != 0) {
    fail("{}: {} attention heads are not a multiple of {} key-value heads", where, config.num_heads,
         config.num_kv_heads);
  }
  if (config.head_dim % 2 != 0) fail("{}: head_dim {} is odd", where, config.head_dim);
}

void check_diffusion_config(int64_t block_size, int64_t mask_token_id, int64_t vocab_size,
                            const std::string& where) {
  if (block_size < 2 || block_size > kMaxBlockSize) {
    fail("{}: block_size is {}, expected 2 to {}", where, block_size, kMaxBlockSize);
  }
  if (mask_token_id < 0 || mask_token_id >= vocab_size) {
    fail("{}: mask_token_id is {}, expected 0 to {}", where, mask_token_id, vocab_size - 1);
  }
}

}  // namespace orthrus
