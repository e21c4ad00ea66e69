#pragma once

namespace orthrus::train {

/// OpenBLAS 0.3.21 takes new Intel CPUs for a Prescott and then runs five times too slow. Where the
/// CPU has AVX-512 and nobody set OPENBLAS_CORETYPE, starts this program once more with
/// OPENBLAS_CORETYPE=SkylakeX; it must be set before the library is loaded. Returns where there is
/// nothing to do or the start fails.
void restart_with_right_blas_kernels(char** argv);

}  // namespace orthrus::train
