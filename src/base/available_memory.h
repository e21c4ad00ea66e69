#pragma once

#include <cstdint>

namespace orthrus {

/// Bytes that this process may still take: what the kernel calls available, bounded by the cgroup's
/// limit. 0 where neither is known.
int64_t available_memory();

/// Bytes of memory that this process has in use, pages of mapped files among them; 0 where unknown.
int64_t resident_memory();

}  // namespace orthrus
