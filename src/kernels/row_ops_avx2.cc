#include "kernels/row_ops_impl.h"
#include "kernels/vec_math_avx2.h"

namespace orthrus {

constinit const RowOps kRowOpsAvx2 = RowOpsImpl<VecAvx2>::table();

}  // namespace orthrus
