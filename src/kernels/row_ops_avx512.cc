#include "kernels/row_ops_impl.h"
#include "kernels/vec_math_avx512.h"

namespace orthrus {

constinit const RowOps kRowOpsAvx512 = RowOpsImpl<VecAvx512>::table();

}  // namespace orthrus
