#include "engine/kv_budget.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/log.h"
#include "cache/block_pool.h"

namespace orthrus {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

}  // namespace

int64_t kv_budget_blocks(double gib, int64_t available, const KvLayout& layout,
                         int64_t max_seq_len) {
  if (!(gib > 0) || !std::isfinite(gib)) {
    fail_usage("kv_cache_memory_budget_gb: expected a number above 0, found {}", gib);
  }
  const double free_gib = static_cast<double>(available) * kKvShareOfMemory / kGiB;
  const bool cut = available > 0 && free_gib < gib;
  const double budget = cut ? free_gib : gib;
  const double block = static_cast<double>(layout.block_bytes()) / kGiB;
  // Far beyond any machine's memory, and safe to multiply.
  const auto blocks = static_cast<int64_t>(std::min(budget / block, 1e12));
  const int64_t one = blocks_for(max_seq_len);
  if (blocks < one) {
    fail(
        "KV cache: {:.3g} GiB {} hold {} tokens, expected room for one sequence of {} (-c): "
        "{:.3g} GiB",
        budget, cut ? "(80 % of the free memory)" : "(kv_cache_memory_budget_gb)",
        blocks * kKvBlockTokens, max_seq_len, static_cast<double>(one) * block);
  }
  if (cut) {
    spdlog::info(
        "KV cache: {:.2f} GiB, {} tokens (80 % of the free memory; kv_cache_memory_budget_gb "
        "allows "
        "{:.4g})",
        budget, blocks * kKvBlockTokens, gib);
  }
  return blocks;
}

}  // namespace orthrus
