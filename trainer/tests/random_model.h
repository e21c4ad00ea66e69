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
