#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.h"
#include "base/tensor_type.h"
#include "formats/model_config.h"

namespace orthrus {

/// Metadata of a GGUF file to be written, in order of the calls. Each key once.
class GgufPairs {
 public:
  void text(std::string_view key, std::string_view value);
  void u32(std::string_view key, int64_t value);
  void f32(std::string_view key, double value);
  void f64(std::string_view key, double value);
  void boolean(std::string_view key, bool value);
  void texts(std::string_view key, std::span<const std::string> values);
  void i32s(std::string_view key, std::span<const int32_t> values);
  void f32s(std::string_view key, std::span<const float> values);
  /// Type number and value as another file has them (GgufMetadata::encoded).
  void encoded(std::string_view key, std::span<const std::byte> value);

  const std::string& bytes() const { return bytes_; }
  uint64_t count() const { return count_; }

 private:
  std::string bytes_;
  uint64_t count_ = 0;
};

/// Hyperparameters, end tokens and sampling defaults: what parse_gguf_config reads, less what
/// tensors say. Scaling that keys cannot say is a tensor, kRopeFactorsName. Error(kInput) where
/// neither can.
void write_gguf_config(const ModelConfig& config, GgufPairs& pairs);

/// Whether keys say the rotary scaling: there is none, one factor for all, or YaRN.
bool rope_scaling_is_metadata(const ModelConfig& config);

/// A tensor to be written. Not kI8.
struct GgufEntry {
  std::string name;            ///< ggml's
  uint32_t type = 0;           ///< ggml's number
  std::vector<int64_t> shape;  ///< in Hugging Face order, outermost first
  uint64_t bytes = 0;
};

/// Writes one GGUF file (version 3), front to back, as an AtomicFile.
class GgufWriter {
 public:
  GgufWriter(const std::string& path, const GgufPairs& metadata,
             const std::vector<GgufEntry>& entries);

  /// The next bytes of the data, in order of `entries`, in pieces that end where a tensor does.
  void append(std::span<const std::byte> bytes);
  /// All data must have been appended. Flushes to disk and gives the file its name.
  void commit();
  /// Of the whole file.
  uint64_t bytes() const { return written_; }

 private:
  void put(std::span<const std::byte> bytes);
  void pad();

  AtomicFile file_;
  std::vector<uint64_t> sizes_;  // of the tensors
  size_t tensor_ = 0;            // that the next bytes belong to
  uint64_t in_tensor_ = 0;       // bytes of it so far
  uint64_t written_ = 0;
};

}  // namespace orthrus
