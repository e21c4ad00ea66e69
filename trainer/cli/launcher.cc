#include "trainer/cli/launcher.h"

#include <unistd.h>

#include <cstdlib>

namespace orthrus::train {

void restart_with_right_blas_kernels(char** argv) {
#if defined(__x86_64__)
  constexpr const char* kVariable = "OPENBLAS_CORETYPE";
  if (std::getenv(kVariable) != nullptr || !__builtin_cpu_supports("avx512f")) return;
  ::setenv(kVariable, "SkylakeX", 1);
  ::execv("/proc/self/exe", argv);
#endif
}

}  // namespace orthrus::train
