#pragma once

#include <cstdint>
#include <string_view>

#include "base/thread_pool.h"

namespace orthrus {

/// Instruction sets with kernels of their own, worst to best. Results of different ones may differ
/// in the last bits; within one they never do.
enum class Isa : uint8_t { kPortable, kAvx2, kAvx512 };

/// "portable", "avx2", "avx512": the values of ORTHRUS_ISA.
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
