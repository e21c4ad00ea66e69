#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/packed_matrix.h"

namespace orthrus {

/// Tensors as a load makes them, by name: matrices packed, vectors as floats.
class LoadedTensors {
 public:
  /// A name that is there already keeps what it has.
  void add(std::string_view name, const PackedMatrix& matrix);
  void add(std::string_view name, const std::vector<float>& vector);
  /// Error(kInput) where the name is missing, or of another shape.
  const PackedMatrix& matrix(std::string_view name, int64_t rows, int64_t cols) const;
  const std::vector<float>& vector(std::string_view name, int64_t size) const;
  bool has_matrix(std::string_view name) const { return matrix_index_.contains(std::string(name)); }

  const std::vector<std::pair<std::string, PackedMatrix>>& matrices() const { return matrices_; }
  const std::vector<std::pair<std::string, std::vector<float>>>& vectors() const {
    return vectors_;
  }

 private:
  std::vector<std::pair<std::string, PackedMatrix>> matrices_;
  std::vector<std::pair<std::string, std::vector<float>>> vectors_;
  std::unordered_map<std::string, size_t> matrix_index_, vector_index_;
};

/// What a file of write_packed_cache begins with.
inline constexpr std::string_view kPackedCacheMagic = "ORTHPACK";

/// Writes the tensors to one file (docs/formats.md, "Packed caches"), which is as it was or
/// complete. `key` says what they were made of. Error(kInput) naming the file where there is no
/// room or it cannot be written.
void write_packed_cache(const std::string& path, const std::string& key,
                        const LoadedTensors& tensors, ThreadPool& pool);

/// The tensors of such a file; the matrices stay where they are in it, mapped. Every byte of them
/// is checked, by all threads. nullopt where there is no file; Error(kInput) in one line where it
/// has another key, is damaged or of another version.
std::optional<LoadedTensors> read_packed_cache(const std::string& path, const std::string& key,
                                               ThreadPool& pool);

}  // namespace orthrus
