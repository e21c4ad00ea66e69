#include "kernels/isa.h"

#include <cstdlib>

#include "base/error.h"

namespace orthrus {
std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

bool isa_supported(Isa isa) {
  if (isa == Isa::kPortable) return true;
#if defined(__x86_64__)
  // The flags that cmake/module.cmake compiles each family with. The builtins also ask whether the
  // operating system saves the registers.
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
              __builtin_cpu_supports("bmi2");
  if (isa == Isa::kAvx2) return avx2;
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  if (isa == Isa::kAvx512) return avx512;
  return avx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

Isa choose_isa() {
  const char* forced = std::getenv("ORTHRUS_ISA");
  if (forced == nullptr || *forced == '\0') {
    Isa best = Isa::kPortable;
    for (Isa isa : kAllIsas) {
      if (isa_supported(isa)) best = isa;
    }
    return best;
  }
  for (Isa isa : kAllIsas) {
    if (isa_name(isa) != forced) continue;
    if (!isa_supported(isa)) fail_usage("ORTHRUS_ISA={}: this CPU cannot run it", forced);
    return isa;
  }
  fail_usage("ORTHRUS_ISA={}: unknown, expected portable, avx2, avx512 or avx512_bf16", forced);
}

}  // namespace orthrus
