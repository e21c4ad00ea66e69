#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/tensor_type.h"
#include "kernels/golden_blocks.h"
#include "kernels/isa.h"
#include "kernels/packed_matrix.h"

namespace orthrus {

/// Every type that a matrix of a model can have in a file.
inline std::vector<TensorType> matrix_types() {
  std::vector<TensorType> types = {TensorType::kF32, TensorType::kF16, TensorType::kBF16};
  types.insert(types.end(), block_types().begin(), block_types().end());
  return types;
}

inline std::vector<Isa> supported_isas() {
  std::vector<Isa> isas;
  for (Isa isa : kIsas) {
    if (isa_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

/// A matrix of random values (plain types) or of random golden blocks, with its bytes.
struct TestMatrix {
  TensorType type;
  int64_t rows;
  int64_t cols;
  std::vector<std::byte> bytes;

  TestMatrix(TensorType t, int64_t r, int64_t c, uint32_t seed = 1) : type(t), rows(r), cols(c) {
    std::mt19937 random(seed);
    const TensorTypeTraits& shape = traits(type);
    bytes.resize(static_cast<size_t>(rows) * row_bytes(type, cols));
    if (shape.block_elements > 1) {
      static const GoldenBlocks goldens;
      const auto blocks = goldens.raw(type);
      const size_t count = blocks.size() / shape.block_bytes;
      for (size_t at = 0; at < bytes.size(); at += shape.block_bytes) {
        std::memcpy(bytes.data() + at, blocks.data() + random() % count * shape.block_bytes,
                    shape.block_bytes);
      }
      return;
    }
    std::normal_distribution<float> normal(0.0f, 0.05f);
    for (size_t i = 0; i < static_cast<size_t>(rows * cols); ++i) {
      const float value = normal(random);
      const f16_t half = f32_to_f16(value);
      const bf16_t brain = f32_to_bf16(value);
      if (type == TensorType::kF32) std::memcpy(bytes.data() + i * 4, &value, 4);
      if (type == TensorType::kF16) std::memcpy(bytes.data() + i * 2, &half, 2);
      if (type == TensorType::kBF16) std::memcpy(bytes.data() + i * 2, &brain, 2);
    }
  }

  MatrixSource source() const { return {.type = type, .data = bytes, .rows = rows, .cols = cols}; }
};

/// Standard normal activations with an outlier here and there, as real ones have.
inline std::vector<float> random_activations(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(count);
  for (float& v : x) v = normal(random) * (random() % 61 == 0 ? 20.0f : 1.0f);
  return x;
}

}  // namespace orthrus
