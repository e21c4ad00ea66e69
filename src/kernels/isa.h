#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/thread_pool.h"

namespace orthrus {

/// Instruction sets with kernels of their own, worst to best. Results of different ones may differ
/// in the last bits; within one they never do.
enum class Isa : uint8_t { kPortable, kAvx2, kAvx512, kAvx512Bf16 };

/// Of all, worst to best.
inline constexpr std::array kAllIsas = {Isa::kPortable, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16};

/// Whether it runs the kernels of AVX-512, as avx512_bf16 does but for products with bf16 weights.
constexpr bool has_avx512(Isa isa) { return isa == Isa::kAvx512 || isa == Isa::kAvx512Bf16; }

/// "portable", "avx2", "avx512", "avx512_bf16": the values of ORTHRUS_ISA.
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
