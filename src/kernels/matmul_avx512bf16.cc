// AVX-512 with BF16: as AVX-512, but bf16 weights meet activations rounded to bf16, a pair of
// inputs a lane and instruction: twice the products of f32.

#include <immintrin.h>

#include "kernels/matmul_tiles.h"

namespace orthrus {
namespace {

struct Avx512Bf16 {
  using Floats = __m512;

  // 24 sums, at most 4 weights and one pair of inputs. A row more costs less than a panel, but up
  // to six rows read memory, which four runs keep busier than three.
  static constexpr int kFewRows = 6;
  static constexpr int kFewPanels = 4;
  static constexpr int kManyRows = 8;
  static constexpr int kManyPanels = 3;
  static constexpr int64_t kPrefetchBytes = 2048;  // of each panel: 150 ns and more at 8 rows

  static ORTHRUS_INLINE void store(float* p, Floats v) { _mm512_storeu_ps(p, v); }
};

ORTHRUS_INLINE __m512bh pair(const uint16_t* x) {
  int32_t bits;
  __builtin_memcpy(&bits, x, sizeof(bits));
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
}

/// Which panels of a tile look ahead. A tile that is alone asks for what it reads soon. Of several
/// that share their panels each asks for some of the next ones, so that memory works all the while.
struct LookAhead {
  bool alone;
  unsigned panels;  // a bit each
};

template <int kRows, int kPanels>
void tile(const MatmulJob& job, int64_t row, int64_t panel, LookAhead look) {
  __m512 acc[kRows][kPanels];
  ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
    ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) acc[i][p] = _mm512_setzero_ps();
  }
  const auto panel_bytes = static_cast<int64_t>(job.panel_bytes);
  const std::byte* at = job.panels + panel * panel_bytes;
  const uint16_t* x = job.bf16 + row * job.bf16_stride;
  const int64_t pairs = (job.cols + 1) / 2;
  // Near its end a panel asks for the head of the panel that this tile's successor reads.
  const int64_t near_end = look.alone ? pairs - Avx512Bf16::kPrefetchBytes / 64 : pairs;
  for (int64_t k = 0; k < pairs;) {
    const bool last = k >= near_end;
    int64_t ahead = kPanels * panel_bytes;
    if (look.alone) ahead = Avx512Bf16::kPrefetchBytes + (last ? (kPanels - 1) * panel_bytes : 0);
    for (const int64_t end = last ? pairs : near_end; k < end; ++k, at += 64, x += 2) {
      __m512bh weights[kPanels];
      ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
        if ((look.panels >> p & 1) != 0) {
          __builtin_prefetch(at + p * panel_bytes + ahead);
        }
        weights[p] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at + p * panel_bytes));
      }
      ORTHRUS_UNROLL for (int i = 0; i < kRows; ++i) {
        const __m512bh inputs = pair(x + i * job.bf16_stride);
        ORTHRUS_UNROLL for (int p = 0; p < kPanels; ++p) {
          acc[i][p] = _mm512_dpbf16_ps(acc[i][p], weights[p], inputs);
        }
      }
    }
  }
  store_tile<Avx512Bf16>(job, row, {panel, panel + kPanels}, acc);
}

template <int kRows, int kPanels>
ORTHRUS_INLINE void run_panels(const MatmulJob& job, int64_t panel) {
  const int64_t tiles = (job.rows + kRows - 1) / kRows;
  int64_t index = 0;
  for_row_tiles<kRows>(0, job.rows, [&](int64_t row, int64_t height) ORTHRUS_INLINE_LAMBDA {
    LookAhead look{tiles == 1, 0};
    for (int64_t p = index++; p < kPanels; p += tiles) look.panels |= 1u << p;
    with_height<kRows>(height, [&](auto rows) ORTHRUS_INLINE_LAMBDA {
      tile<rows.value, kPanels>(job, row, panel, look);
    });
  });
}

/// Panels [begin, end), kPanels at a time, the rest in narrower tiles, but none of one panel where
/// two of two do.
template <int kRows, int kPanels>
void run_rows(const MatmulJob& job, int64_t begin, int64_t end) {
  while (end - begin >= kPanels && (kPanels < 3 || end - begin != kPanels + 1)) {
    run_panels<kRows, kPanels>(job, begin);
    begin += kPanels;
  }
  if constexpr (kPanels > 1) run_rows<kRows, kPanels - 1>(job, begin, end);
}

void run(const MatmulJob& job, int64_t begin, int64_t end) {
  using V = Avx512Bf16;
  if (job.form != TensorType::kBF16) return avx512_matmul_kernels().run(job, begin, end);
  if (job.rows <= V::kFewRows) return run_rows<V::kFewRows, V::kFewPanels>(job, begin, end);
  run_rows<V::kManyRows, V::kManyPanels>(job, begin, end);
}

void quantize_row(const float* x, int64_t cols, ActivationGroup* groups, int64_t stride) {
  avx512_matmul_kernels().quantize_row(x, cols, groups, stride);
}

void round_row(const float* x, int64_t cols, uint16_t* out) {
  for (int64_t k = 0; k < cols; k += 16) {
    const int64_t left = cols - k;
    const auto lanes = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
    // Nearest even; the lanes beyond the last input are zero.
    const __m256bh rounded = _mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(lanes, x + k));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + k), reinterpret_cast<__m256i>(rounded));
  }
}

}  // namespace

const MatmulKernels& avx512bf16_matmul_kernels() {
  static constexpr MatmulKernels kKernels = {quantize_row, run, round_row};
  return kKernels;
}

}  // namespace orthrus
