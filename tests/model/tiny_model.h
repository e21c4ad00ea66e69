#pragma once

#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cache/block_pool.h"
#include "formats/checkpoint.h"
#include "model/forward.h"
#include "model/weights.h"

namespace orthrus {

/// The golden tensors of tests/data/tiny/logits.safetensors, I32 ids included.
class Goldens {
 public:
  Goldens() {
    std::ifstream file(std::string(ORTHRUS_TEST_DATA) + "/tiny/logits.safetensors",
                       std::ios::binary);
    bytes_.assign(std::istreambuf_iterator<char>(file), {});
    uint64_t size = 0;
    std::memcpy(&size, bytes_.data(), 8);
    header_ =
        nlohmann::json::parse(bytes_.begin() + 8, bytes_.begin() + 8 + static_cast<long>(size));
    data_ = 8 + size;
  }
  template <typename T>
  std::vector<T> get(const std::string& name) const {
    const auto& offsets = header_.at(name).at("data_offsets");
    const size_t begin = offsets[0];
    const size_t end = offsets[1];
    std::vector<T> values((end - begin) / sizeof(T));
    std::memcpy(values.data(), bytes_.data() + data_ + begin, end - begin);
    return values;
  }
  bool has(const std::string& name) const { return header_.contains(name); }

 private:
  std::string bytes_;
  nlohmann::json header_;
  size_t data_ = 0;
};

/// A model loaded from its files, with a cache and a pass.
struct ReadyModel {
  ReadyModel(const Checkpoint& checkpoint, const LoadRequest& request, KvType kv, int threads,
             Isa isa = choose_isa(), int64_t max_rows = 256)
      : pool(threads), context{isa, pool}, model(load_model(checkpoint, request, pool)) {
    blocks = std::make_unique<BlockPool>(kv_layout(model.config, kv, kv), 256);
    forward = std::make_unique<Forward>(model, blocks->layout(), context, max_rows);
  }

  /// Runs `tokens` through the AR view from the table's length and commits them; the logits of all
  /// rows.
  std::vector<float> prefill(BlockTable& table, std::span<const int32_t> tokens,
                             int64_t chunk = 64) {
    std::vector<float> all;
    for (size_t i = 0; i < tokens.size(); i += static_cast<size_t>(chunk)) {
      const auto part = tokens.subspan(i, std::min(static_cast<size_t>(chunk), tokens.size() - i));
      const auto size = static_cast<int64_t>(part.size());
      table.reserve(table.length() + size);
      const Span span{&table, View::kAr, part, table.length(), 0, size};
      const auto logits = forward->run(span);
      all.insert(all.end(), logits.begin(), logits.end());
      table.set_length(table.length() + size);
    }
    return all;
  }

  /// The logits of a diffusion block anchored at `position`.
  std::vector<float> draft(const BlockTable& table, int32_t anchor, int64_t position,
                           int64_t rows) {
    std::vector<int32_t> tokens(static_cast<size_t>(rows), kMaskToken);
    tokens[0] = anchor;
    const Span span{&table, View::kDiffusion, tokens, position, 0, rows};
    const auto logits = forward->run(span);
    return {logits.begin(), logits.end()};
  }

  ThreadPool pool;
  ComputeContext context;
  Model model;
  std::unique_ptr<BlockPool> blocks;
  std::unique_ptr<Forward> forward;
};

/// The tiny Orthrus checkpoint ready to run.
struct TinyModel : ReadyModel {
  TinyModel(WeightFormat format, KvType kv, int threads, Isa isa = choose_isa())
      : ReadyModel(open_checkpoint(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint"),
                   request(format), kv, threads, isa) {}

 private:
  static LoadRequest request(WeightFormat format) {
    LoadRequest request;
    request.format = format;
    request.diffusion = LoadRequest::Diffusion::kCheckpoint;
    return request;
  }
};

}  // namespace orthrus
