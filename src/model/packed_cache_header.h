#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace orthrus {

/// What stands in front of the tensors of a packed cache (docs/formats.md, "Packed caches").
struct PackedCacheHeader {
  nlohmann::json fields;  ///< an object
  size_t data = 0;        ///< where the first tensor begins in the file
};

/// A header as a file begins with it, up to the first tensor.
std::vector<std::byte> write_packed_cache_header(const nlohmann::json& fields);

/// The header of a file of that name. Error(kInput) in one line where it is damaged or of something
/// else.
PackedCacheHeader read_packed_cache_header(std::span<const std::byte> file,
                                           const std::string& path);

/// fields[name]; Error(kInput) where there is none.
const nlohmann::json& packed_cache_field(const nlohmann::json& fields, const char* name,
                                         const std::string& path);

/// What a cache was made of, as write_packed_cache() was told. Error(kInput) as above, and where
/// the file cannot be read.
std::string packed_cache_key(const std::string& path);

}  // namespace orthrus
