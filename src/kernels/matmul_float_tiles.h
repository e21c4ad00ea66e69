#pragma once

#include "kernels/matmul_tiles.h"

namespace orthrus {

/// Products with f32, f16 or bf16 panels: one fused multiply-add an input and output, inputs in
/// order.
template <typename V, TensorType kForm, int kRows, int kPanels>
ORTHRUS_INLINE void float_tile(const std::byte* panels, size_t panel_bytes, const float* x,
                               int64_t x_stride, int64_t cols, float* sums) {
  using Floats = typename V::Floats;
  constexpr bool kPairs = kForm == TensorType::kBF16;
  constexpr size_t kBytes = kForm == TensorType::kF16 ? 32 : 64;  // a register's share of a panel
  Floats acc[kRows][kPanels];
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA { acc[i.value][p.value] = V::zero(); });
  });
  // acc += w * x[.][k]
  auto add = [&](const Floats(&w)[kPanels], int64_t k) ORTHRUS_INLINE_LAMBDA {
    unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
      const Floats value = V::splat(x[i.value * x_stride + k]);
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        acc[i.value][p.value] = V::fma(w[p.value], value, acc[i.value][p.value]);
      });
    });
  };
  auto prefetch = [&](const std::byte* at) ORTHRUS_INLINE_LAMBDA {
    if constexpr (kRows <= V::kPrefetchRows) {
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        __builtin_prefetch(at + p.value * panel_bytes + V::kPrefetchBytes);
      });
    }
  };
  Floats w[kPanels];
  if constexpr (kPairs) {
    const std::byte* at = panels;
    for (int64_t k = 0; k + 1 < cols; k += 2, at += kBytes) {
      prefetch(at);
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        w[p.value] = V::load_bf16_even(at + p.value * panel_bytes);
      });
      add(w, k);
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        w[p.value] = V::load_bf16_odd(at + p.value * panel_bytes);
      });
      add(w, k + 1);
    }
    if (cols % 2 != 0) {
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        w[p.value] = V::load_bf16_even(at + p.value * panel_bytes);
      });
      add(w, cols - 1);
    }
  } else {
    const std::byte* at = panels;
    for (int64_t k = 0; k < cols; ++k, at += kBytes) {
      prefetch(at);
      unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
        const std::byte* from = at + p.value * panel_bytes;
        if constexpr (kForm == TensorType::kF16) {
          w[p.value] = V::load_f16(from);
        } else {
          w[p.value] = V::load(from);
        }
      });
      add(w, k);
    }
  }
  unrolled<kRows>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    unrolled<kPanels>([&](auto p) ORTHRUS_INLINE_LAMBDA {
      V::store(sums + (i.value * kPanels + p.value) * kLanes, acc[i.value][p.value]);
    });
  });
}

template <typename V, TensorType kForm, int kPanels>
void float_panels(const MatmulJob& job, int64_t panel) {
  const std::byte* panels = job.panels + static_cast<size_t>(panel) * job.panel_bytes;
  alignas(64) float sums[V::kFloatRows * kPanels * kLanes];
  for_row_tiles<V::kFloatRows>(0, job.rows, [&](int64_t row, int64_t height) ORTHRUS_INLINE_LAMBDA {
    const float* x = job.x + row * job.x_stride;
    with_height<V::kFloatRows>(height, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
      float_tile<V, kForm, rows.value, kPanels>(panels, job.panel_bytes, x, job.x_stride, job.cols,
                                                sums);
    });
    store_sums<V>(job, row, height, panel, kPanels * kLanes, sums);
  });
}

template <typename V, TensorType kForm>
void run_floats(const MatmulJob& job, int64_t begin, int64_t end) {
  for (; begin + V::kFloatPanels <= end; begin += V::kFloatPanels) {
    float_panels<V, kForm, V::kFloatPanels>(job, begin);
  }
  for (; begin < end; ++begin) float_panels<V, kForm, 1>(job, begin);
}

}  // namespace orthrus
