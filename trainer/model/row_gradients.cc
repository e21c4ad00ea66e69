#include "trainer/model/row_gradients.h"

#include "kernels/vec_math_portable.h"
#include "trainer/model/row_gradients_impl.h"

namespace orthrus::train {
namespace {

constexpr RowGradients kRowGradientsPortable = RowGradientsImpl<VecPortable>::table();

}  // namespace

const RowGradients& row_gradients(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512) return kRowGradientsAvx512;
  if (isa == Isa::kAvx2) return kRowGradientsAvx2;
#endif
  return kRowGradientsPortable;
}

}  // namespace orthrus::train
