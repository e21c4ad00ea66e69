#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace orthrus {

/// A hash of the bytes and their number that tells damage, as fast as memory is read. It is no
/// protection against anyone who means harm.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace orthrus
