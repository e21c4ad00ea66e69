#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "trainer/fit/student.h"

namespace orthrus::train {

inline std::string tiny_path() { return std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint"; }

inline DualModel tiny_model(DiffusionSource source) {
  return DualModel(load_tensors(open_checkpoint(tiny_path()), source));
}

/// Documents of made-up tokens: a prompt of 4, the rest an answer.
inline Shard tiny_documents(int64_t count, int64_t length = 40) {
  Shard shard{"", 1088, {}, {}};
  for (int64_t i = 0; i < count; ++i) {
    Document d;
    for (int64_t t = 0; t < length; ++t) {
      d.tokens.push_back(static_cast<int32_t>((i * 31 + t * t * 7 + t) % 1000));
    }
    d.answers = {{4, length}};
    shard.documents.push_back(d);
  }
  return shard;
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.sizes() == y.sizes() && std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

}  // namespace orthrus::train
