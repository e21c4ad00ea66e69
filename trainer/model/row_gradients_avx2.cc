#include "kernels/vec_math_avx2.h"
#include "trainer/model/row_gradients_impl.h"

namespace orthrus::train {

constinit const RowGradients kRowGradientsAvx2 = RowGradientsImpl<VecAvx2>::table();

}  // namespace orthrus::train
