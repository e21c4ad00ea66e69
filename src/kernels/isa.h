#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/thread_pool.h"

namespace orthrus {

/// Instruction sets with kernels of their own. Results of different ones may differ
/// in the last bits; within one they never do. kAvxVnni is kAvx2 with the dot product of bytes,
/// with equal results; kAvx512Bf16 is kAvx512 with that of bf16 pairs; kNeon is AArch64's with the
/// dot product of bytes (FEAT_DotProd).
enum class Isa : uint8_t { kPortable, kAvx2, kAvxVnni, kAvx512, kAvx512Bf16, kNeon };

/// Every one, those of a processor worst to best.
inline constexpr std::array kIsas = {Isa::kPortable, Isa::kAvx2,       Isa::kAvxVnni,
                                     Isa::kAvx512,   Isa::kAvx512Bf16, Isa::kNeon};

/// The one whose kernels it shares for all but matrix products.
constexpr Isa common_isa(Isa isa) {
  if (isa == Isa::kAvxVnni) return Isa::kAvx2;
  return isa == Isa::kAvx512Bf16 ? Isa::kAvx512 : isa;
}

/// "portable", "avx2", "avxvnni", "avx512", "avx512_bf16", "neon": the values of ORTHRUS_ISA.
std::string_view isa_name(Isa isa);

/// Whether this CPU (and this build) can run it.
bool isa_supported(Isa isa);

/// The best supported one, or the one that the environment variable ORTHRUS_ISA names.
/// Error(kUsage) where that is unknown or not supported here.
Isa choose_isa();

/// What every kernel call needs: passed along, never global.
struct ComputeContext {
  Isa isa;
  ThreadPool& pool;
};

}  // namespace orthrus
