// AVX2 with VPDPBUSD, which adds a quad's products to 32-bit sums in one step and cannot saturate.

#include "kernels/matmul_avx2.h"

namespace orthrus {
namespace {

struct AvxVnni : Avx2 {
  template <int kMostCode>
  struct Dot : DirectDot<Avx2> {
    static ORTHRUS_INLINE __m256i load(const int8_t* x) { return splat_quad(x); }
    static ORTHRUS_INLINE Ints add(Ints sums, Bytes codes, __m256i x) {
      return {_mm256_dpbusd_avx_epi32(sums.a, codes.a, x),
              _mm256_dpbusd_avx_epi32(sums.b, codes.b, x)};
    }
  };
};

}  // namespace

const MatmulKernels& avxvnni_matmul_kernels() { return kMatmulKernels<AvxVnni>; }

}  // namespace orthrus
