#include "kernels/attention_impl.h"
#include "kernels/vec_math_neon.h"

namespace orthrus {

constinit const AttentionKernels kAttentionNeon = AttentionImpl<VecNeon>::table();

}  // namespace orthrus
