#include "kernels/row_ops_impl.h"
#include "kernels/vec_math_portable.h"

namespace orthrus {
namespace {

constexpr RowOps kRowOpsPortable = RowOpsImpl<VecPortable>::table();

}  // namespace

const RowOps& row_ops(Isa isa) {
#if defined(__x86_64__)
  if (common_isa(isa) == Isa::kAvx512) return kRowOpsAvx512;
  if (common_isa(isa) == Isa::kAvx2) return kRowOpsAvx2;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return kRowOpsNeon;
#endif
  return kRowOpsPortable;
}

}  // namespace orthrus
