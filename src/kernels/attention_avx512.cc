#include "kernels/attention_impl.h"
#include "kernels/vec_math_avx512.h"

namespace orthrus {

constinit const AttentionKernels kAttentionAvx512 = AttentionImpl<VecAvx512>::table();

}  // namespace orthrus
