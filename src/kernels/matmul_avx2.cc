#include "kernels/matmul_avx2.h"

namespace orthrus {

const MatmulKernels& avx2_matmul_kernels() { return kMatmulKernels<Avx2>; }

}  // namespace orthrus
