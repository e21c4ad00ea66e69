#include "kernels/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace orthrus {
namespace {

#if defined(__x86_64__)
// clang 14 knows no __builtin_cpu_supports("avxvnni"). Asked once: in a virtual machine the
// instruction leaves it, which takes as long as a decoder's other preparations together.
bool cpu_has_avx_vnni() {
  static const bool has = [] {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && (eax & (1u << 4)) != 0;
  }();
  return has;
}
#endif

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kPortable:
      return "portable";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvxVnni:
      return "avxvnni";
    case Isa::kAvx512:
      return "avx512";
    case Isa::kAvx512Bf16:
      return "avx512_bf16";
    case Isa::kNeon:
      return "neon";
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
  if (isa == Isa::kAvxVnni) return avx2 && cpu_has_avx_vnni();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
  if (isa == Isa::kAvx512) return avx512;
  return isa == Isa::kAvx512Bf16 && avx512 && __builtin_cpu_supports("avx512bf16");
#elif defined(__aarch64__)
  return isa == Isa::kNeon && (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#else
  return false;
#endif
}

Isa choose_isa() {
  const char* forced = std::getenv("ORTHRUS_ISA");
  if (forced == nullptr || *forced == '\0') {
    Isa best = Isa::kPortable;
    for (Isa isa : kIsas) {
      if (isa_supported(isa)) best = isa;
    }
    return best;
  }
  for (Isa isa : kIsas) {
    if (isa_name(isa) != forced) continue;
    if (!isa_supported(isa)) fail_usage("ORTHRUS_ISA={}: this CPU cannot run it", forced);
    return isa;
  }
  std::string known;
  for (Isa isa : kIsas) known += (known.empty() ? "" : ", ") + std::string(isa_name(isa));
  fail_usage("ORTHRUS_ISA={}: unknown, expected one of {}", forced, known);
}

}  // namespace orthrus
