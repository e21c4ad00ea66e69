#pragma once

#include <cstdint>

namespace orthrus {

/// ggml's rotary embedding of llama-architecture files interleaves the two halves of a head: the
/// file's row h*D + 2*i + j is row h*D + j*D/2 + i in Hugging Face order, with D the head size.

/// The file's row that holds row `row` of Hugging Face order.
constexpr int64_t interleaved_row(int64_t row, int64_t head_dim) {
  const int64_t i = row % head_dim;
  return row - i + 2 * (i % (head_dim / 2)) + i / (head_dim / 2);
}

/// The row of Hugging Face order that the file's row `row` holds.
constexpr int64_t plain_row(int64_t row, int64_t head_dim) {
  const int64_t i = row % head_dim;
  return row - i + (i % 2) * (head_dim / 2) + i / 2;
}

}  // namespace orthrus
