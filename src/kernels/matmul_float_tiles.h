#pragma once

#include "kernels/matmul_tiles.h"

namespace orthrus {

/// The first (or only) input that a register at `from` holds for its 16 outputs.
template <typename V, TensorType kForm>
ORTHRUS_INLINE typename V::Floats load_weights(const std::byte* from) {
  if constexpr (kForm == TensorType::kF32) return V::load(from);
  if constexpr (kForm == TensorType::kF16) return V::load_f16(from);
  if constexpr (kForm == TensorType::kBF16) return V::load_bf16_even(from);
}

/// Products with f32, f16 or bf16 panels: one fused multiply-add an input and output, inputs in
/// order.
template <typename V, TensorType kForm, int kRows, int kPanels>
ORTHRUS_INLINE void float_tile(const MatmulJob& job, int64_t row, int64_t panel) {
  using Floats = typename V::Floats;
  constexpr bool kPairs = kForm == TensorType::kBF16;
  constexpr size_t kBytes = kForm == TensorType::kF16 ? 32 : 64;  // a register's share of a panel
  const size_t panel_bytes = job.panel_bytes;
  const std::byte* at = job.panels + static_cast<size_t>(panel) * panel_bytes;
  const float* x = job.x + row * job.x_stride;
  const int64_t x_stride = job.x_stride;
  const int64_t cols = job.cols;
  Floats acc[kRows][kPanels];
  ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) acc[i][p] = V::zero();
  }
  // acc += w * x[.][k]
  auto add = [&](const Floats(&w)[kPanels], int64_t k) ORTHRUS_INLINE_LAMBDA {
    ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
      const Floats value = V::splat(x[i * x_stride + k]);
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) acc[i][p] = V::fma(w[p], value, acc[i][p]);
    }
  };
  constexpr int kInputs = kPairs ? 2 : 1;  // of one register
  const int64_t registers = cols / kInputs;
  // Near its end a panel asks for the head of the panel that this tile's successor reads.
  const int64_t near_end = registers - static_cast<int64_t>(V::kFloatPrefetchBytes / kBytes);
  for (int64_t r = 0; r < registers;) {
    const bool last = r >= near_end;
    const size_t ahead = V::kFloatPrefetchBytes + (last ? (kPanels - 1) * panel_bytes : 0);
    for (const int64_t end = last ? registers : near_end; r < end; ++r, at += kBytes) {
      if constexpr (kRows <= V::kPrefetchRows) {
        ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
          __builtin_prefetch(at + p * panel_bytes + ahead);
        }
      }
      Floats w[kPanels];
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
        w[p] = load_weights<V, kForm>(at + p * panel_bytes);
      }
      add(w, r * kInputs);
      if constexpr (kPairs) {
        ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
          w[p] = V::load_bf16_odd(at + p * panel_bytes);
        }
        add(w, r * kInputs + 1);
      }
    }
  }
  if (cols % kInputs != 0) {
    Floats w[kPanels];
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
      w[p] = load_weights<V, kForm>(at + p * panel_bytes);
    }
    add(w, cols - 1);
  }
  store_tile<V>(job, row, {panel, panel + kPanels}, acc);
}

/// Panels [begin, end), kPanels at a time and the rest alone, by tiles of at most kMost rows.
template <typename V, TensorType kForm, int kMost, int kPanels>
void run_float_tiles(const MatmulJob& job, int64_t begin, int64_t end) {
  for (; begin + kPanels <= end; begin += kPanels) {
    for_row_tiles<kMost>(0, job.rows, [&](int64_t row, int64_t height) ORTHRUS_INLINE_LAMBDA {
      with_height<kMost>(height, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
        float_tile<V, kForm, rows.value, kPanels>(job, row, begin);
      });
    });
  }
  if constexpr (kPanels > 1) run_float_tiles<V, kForm, kMost, 1>(job, begin, end);
}

template <typename V, TensorType kForm>
void run_floats(const MatmulJob& job, int64_t begin, int64_t end) {
  if constexpr (V::kFewFloatRows > 0) {
    if (job.rows <= V::kFewFloatRows) {
      return run_float_tiles<V, kForm, V::kFewFloatRows, V::kFewFloatPanels>(job, begin, end);
    }
  }
  run_float_tiles<V, kForm, V::kFloatRows, V::kFloatPanels>(job, begin, end);
}

}  // namespace orthrus
