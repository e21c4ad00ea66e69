#pragma once

#include <cstdint>

namespace orthrus {

/// Bytes that this process may still take: what the kernel calls available, bounded by the cgroup's
/// limit. 0 where neither is known.
int64_t available_memory();

}  // namespace orthrus
