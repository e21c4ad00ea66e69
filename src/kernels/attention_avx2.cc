#include "kernels/attention_impl.h"
#include "kernels/vec_math_avx2.h"

namespace orthrus {

constinit const AttentionKernels kAttentionAvx2 = AttentionImpl<VecAvx2>::table();

}  // namespace orthrus
