#include "kernels/row_ops_impl.h"
#include "kernels/vec_math_neon.h"

namespace orthrus {

constinit const RowOps kRowOpsNeon = RowOpsImpl<VecNeon>::table();

}  // namespace orthrus
