#include "kernels/attention_impl.h"
#include "kernels/vec_math_portable.h"

namespace orthrus {

constinit const AttentionKernels kAttentionPortable = AttentionImpl<VecPortable>::table();

}  // namespace orthrus
