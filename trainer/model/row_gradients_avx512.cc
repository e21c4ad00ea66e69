#include "kernels/vec_math_avx512.h"
#include "trainer/model/row_gradients_impl.h"

namespace orthrus::train {

constinit const RowGradients kRowGradientsAvx512 = RowGradientsImpl<VecAvx512>::table();

}  // namespace orthrus::train
