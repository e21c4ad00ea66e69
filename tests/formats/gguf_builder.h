#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus::testing {

/// Builds small GGUF files in memory: metadata in order of the calls, then tensors, each at the
/// next multiple of the alignment.
class GgufBuilder {
 public:
  /// Type numbers of ggml and of metadata values.
  enum Ggml : uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kIq2Xxs = 16, kBf16 = 30 };

  explicit GgufBuilder(uint32_t version = 3) : version_(version) {}

  GgufBuilder& text(std::string_view key, std::string_view value) {
    return pair(key, 8, string_bytes(value));
  }
  GgufBuilder& u32(std::string_view key, uint32_t value) { return pair(key, 4, bytes(value)); }
  GgufBuilder& u64(std::string_view key, uint64_t value) { return pair(key, 10, bytes(value)); }
  GgufBuilder& i8(std::string_view key, int8_t value) { return pair(key, 1, bytes(value)); }
  GgufBuilder& u16(std::string_view key, uint16_t value) { return pair(key, 2, bytes(value)); }
  GgufBuilder& i32(std::string_view key, int32_t value) { return pair(key, 5, bytes(value)); }
  GgufBuilder& f32(std::string_view key, float value) { return pair(key, 6, bytes(value)); }
  GgufBuilder& f64(std::string_view key, double value) { return pair(key, 12, bytes(value)); }
  GgufBuilder& boolean(std::string_view key, bool value) {
    return pair(key, 7, bytes(static_cast<uint8_t>(value)));
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string body = bytes(uint32_t{8}) + bytes(uint64_t{values.size()});
    for (const std::string& value : values) body += string_bytes(value);
    return pair(key, 9, body);
  }
  GgufBuilder& i32s(std::string_view key, const std::vector<int32_t>& values) {
    std::string body = bytes(uint32_t{5}) + bytes(uint64_t{values.size()});
    for (int32_t value : values) body += bytes(value);
    return pair(key, 9, body);
  }
  GgufBuilder& f32s(std::string_view key, const std::vector<float>& values) {
    std::string body = bytes(uint32_t{6}) + bytes(uint64_t{values.size()});
    for (float value : values) body += bytes(value);
    return pair(key, 9, body);
  }
  /// Any type number with any bytes as its value.
  GgufBuilder& pair(std::string_view key, uint32_t type, std::string_view value) {
    metadata_ += string_bytes(key) + bytes(type);
    metadata_ += value;
    ++keys_;
    return *this;
  }

  /// sizes: innermost first, as in the file.
  GgufBuilder& tensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& sizes,
                      std::string_view data) {
    return tensor_at(name, type, sizes, data_.size()).raw_data(data);
  }
  /// A table entry alone, with that offset.
  GgufBuilder& tensor_at(std::string_view name, uint32_t type, const std::vector<uint64_t>& sizes,
                         uint64_t offset) {
    table_ += string_bytes(name) + bytes(static_cast<uint32_t>(sizes.size()));
    for (uint64_t size : sizes) table_ += bytes(size);
    table_ += bytes(type) + bytes(offset);
    ++tensors_;
    return *this;
  }
  GgufBuilder& raw_data(std::string_view data) {
    data_ += data;
    data_.resize((data_.size() + kAlignment - 1) / kAlignment * kAlignment);
    return *this;
  }
  /// A tensor of zeros in F32.
  GgufBuilder& zeros(std::string_view name, const std::vector<uint64_t>& sizes) {
    uint64_t elements = 1;
    for (uint64_t size : sizes) elements *= size;
    return tensor(name, kF32, sizes, std::string(elements * 4, '\0'));
  }

  std::string build() const {
    std::string out = "GGUF" + bytes(version_) + bytes(tensors_) + bytes(keys_);
    out += metadata_ + table_;
    out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment);
    return out + data_;
  }

  static std::string string_bytes(std::string_view text) {
    return bytes(uint64_t{text.size()}) + std::string(text);
  }
  template <typename T>
  static std::string bytes(T value) {
    return {reinterpret_cast<const char*>(&value), sizeof value};
  }

 private:
  static constexpr size_t kAlignment = 32;

  uint32_t version_;
  uint64_t keys_ = 0;
  uint64_t tensors_ = 0;
  std::string metadata_;
  std::string table_;
  std::string data_;
};

}  // namespace orthrus::testing
