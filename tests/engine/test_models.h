#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/generator.h"

namespace orthrus {

/// A line of a golden JSONL file under tests/data.
inline std::vector<nlohmann::json> read_jsonl(const std::string& name) {
  std::ifstream file(std::string(ORTHRUS_TEST_DATA) + "/" + name);
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty()) lines.push_back(nlohmann::json::parse(line));
  }
  return lines;
}

inline std::string tiny_path() { return std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint"; }

/// The demo model, by the name `orthrus pull` gives it (`make test` pulls it first).
inline std::string demo_path() {
  const char* path = std::getenv("ORTHRUS_DEMO_GGUF");
  return path ? path : "smollm2-135m";
}

inline std::string demo_adapter() {
  return std::string(ORTHRUS_SOURCE_DIR) + "/models/smollm2-135m";
}

inline LoadOptions tiny_options(WeightFormat format, int threads = 2, int64_t ubatch = 512) {
  LoadOptions options;
  options.model = tiny_path();
  options.weights = format;
  options.draft_weights = DraftWeights::kSame;  // whatever this machine would choose
  options.threads = threads;
  options.ubatch = ubatch;
  return options;
}

inline LoadOptions demo_options(WeightFormat format, int threads = 2, int64_t ubatch = 512) {
  LoadOptions options = tiny_options(format, threads, ubatch);
  options.model = demo_path();
  options.adapter = demo_adapter();
  return options;
}

}  // namespace orthrus
