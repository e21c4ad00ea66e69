#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "formats/hf_config.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_names.h"

namespace orthrus::train {

/// With the vocabulary of the tiny checkpoint, else unlike it.
inline constexpr const char* kSmallLlama =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "vocab_size": 1088, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_act": "silu",
    "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "tie_word_embeddings": false, "eos_token_id": 1023, "bos_token_id": 1021})";

/// A small model of random weights in a Hugging Face folder of its own, with all that its config
/// asks for.
class RandomModel {
 public:
  explicit RandomModel(const std::string& config)
      : folder_(testing::TempDir() + "/orthrus_random_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "/config.json") << config;
    const ModelConfig parsed = parse_hf_config({folder_, config, "", /*has_lm_head=*/true});
    std::vector<SafetensorsEntry> entries;
    for (const TensorSpec& spec : ar_tensors(parsed)) {
      entries.push_back({spec.name, TensorType::kF32, spec.shape});
    }
    SafetensorsWriter writer(folder_ + "/model.safetensors", entries, {});
    std::mt19937 random(9);
    std::normal_distribution<float> normal(0, 0.2f);
    for (const SafetensorsEntry& entry : entries) {
      size_t count = 1;
      for (const int64_t size : entry.shape) count *= static_cast<size_t>(size);
      std::vector<float> values(count);
      const float middle = entry.name.ends_with("norm.weight") ? 1.0f : 0.0f;
      for (float& value : values) value = middle + normal(random);
      writer.append(std::as_bytes(std::span(values)));
    }
    writer.commit();
  }
  ~RandomModel() { std::filesystem::remove_all(folder_); }
  RandomModel(const RandomModel&) = delete;
  RandomModel& operator=(const RandomModel&) = delete;

  const std::string& path() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace orthrus::train
