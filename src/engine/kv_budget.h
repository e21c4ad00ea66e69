#pragma once

#include <cstdint>

#include "kernels/attention.h"

namespace orthrus {

/// Share of the free memory that keys and values may take.
inline constexpr double kKvShareOfMemory = 0.8;

/// Blocks of keys and values in a budget of `gib` GiB, or in kKvShareOfMemory of `available` bytes
/// (0: unknown) where that is less, which is said in a notice. Error(kUsage) for a budget that is
/// not above 0, Error(kInput) where not one sequence of max_seq_len tokens fits.
int64_t kv_budget_blocks(double gib, int64_t available, const KvLayout& layout,
                         int64_t max_seq_len);

}  // namespace orthrus
