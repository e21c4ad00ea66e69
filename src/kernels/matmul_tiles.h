#pragma once

// Shared by the kernels of every instruction set; included by matmul_<isa>.cc only. Everything here
// is a template on a vector type V of an unnamed namespace, so that no instance compiled for one
// instruction set can be linked into another.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/matmul_kernels.h"
#include "kernels/packed_form.h"

#define ORTHRUS_INLINE __attribute__((always_inline)) inline
#define ORTHRUS_INLINE_LAMBDA __attribute__((always_inline))
// Of loops over the rows and panels of a tile, so that arrays of sums become registers.
#if defined(__clang__)
#define ORTHRUS_UNROLL _Pragma("unroll")
#else
#define ORTHRUS_UNROLL _Pragma("GCC unroll 16")
#endif

namespace orthrus {

template <int kValue>
struct Index {
  static constexpr int value = kValue;
};

/// fn(Index<0>) ... fn(Index<N - 1>), unrolled.
template <typename Fn, int... kIndices>
ORTHRUS_INLINE void unrolled(Fn&& fn, std::integer_sequence<int, kIndices...>) {
  (fn(Index<kIndices>{}), ...);
}
template <int kCount, typename Fn>
ORTHRUS_INLINE void unrolled(Fn&& fn) {
  unrolled(fn, std::make_integer_sequence<int, kCount>{});
}

/// Rows [first, first + count) of a job: tiles of nearly equal height, at most kMost. Calls
/// fn(row, height).
template <int kMost, typename Fn>
ORTHRUS_INLINE void for_row_tiles(int64_t first, int64_t count, Fn&& fn) {
  int64_t tiles = (count + kMost - 1) / kMost;
  for (const int64_t end = first + count; first < end; --tiles) {
    const int64_t height = (end - first + tiles - 1) / tiles;
    fn(first, height);
    first += height;
  }
}

/// Calls fn(Index<height>) for a height known at run time, 1 to kMost.
template <int kMost, typename Fn>
ORTHRUS_INLINE void with_height(int64_t height, Fn&& fn) {
  unrolled<kMost>([&](auto i) ORTHRUS_INLINE_LAMBDA {
    if (height == i.value + 1) fn(Index<i.value + 1>{});
  });
}

struct PanelRange {
  int64_t begin;
  int64_t end;
};

/// Writes the sums of rows [row, row + kRows) of the job for the outputs of the panels from
/// `panels.begin` on to `out`, with the bias, without what lies beyond the last panel or output.
template <typename V, int kRows, int kPanels>
ORTHRUS_INLINE void store_tile(const MatmulJob& job, int64_t row, PanelRange panels,
                               const typename V::Floats (&acc)[kRows][kPanels]) {
  constexpr int64_t kWidth = kPanels * kLanes;
  const int64_t first = panels.begin * kLanes;
  const int64_t end = panels.end * kLanes < job.outputs ? panels.end * kLanes : job.outputs;
  float* out = job.out + row * job.out_stride + first;
  if (end - first >= kWidth && job.bias == nullptr) {
    ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
        V::store(out + i * job.out_stride + p * kLanes, acc[i][p]);
      }
    }
    return;
  }
  alignas(64) float sums[kRows][kWidth];
  ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) V::store(sums[i] + p * kLanes, acc[i][p]);
  }
  const int64_t count = end - first < kWidth ? end - first : kWidth;
  for (int64_t i = 0; i < kRows; ++i, out += job.out_stride) {
    for (int64_t n = 0; n < count; ++n) {
      out[n] = job.bias == nullptr ? sums[i][n] : sums[i][n] + job.bias[first + n];
    }
  }
}

}  // namespace orthrus
