#include "formats/gguf_parser.h"

#include <cstring>
#include <type_traits>

#include "base/error.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

// Type numbers of metadata values.
enum : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
  kTypeCount
};

constexpr size_t kMinBytes[kTypeCount] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

constexpr uint64_t kMaxKeys = 1 << 16;
constexpr uint64_t kMaxTensors = 1 << 18;
constexpr uint64_t kMaxDimensions = 4;
// Elements become 8 or 16 bytes each: this bounds them to some 256 MB where real files, with
// vocabularies of at most some 300,000 entries in four arrays, have under 2 million.
constexpr uint64_t kMaxArrayElements = 1 << 24;
constexpr size_t kMaxNameBytes = 1 << 10;

}  // namespace

GgufParser::GgufParser(std::span<const std::byte> bytes, const std::string& name)
    : bytes_(bytes), file_(name) {
  if (bytes.size() < 4 || std::memcmp(bytes.data(), "GGUF", 4) != 0) {
    fail("{}: not a GGUF file (it does not start with \"GGUF\")", file_);
  }
  position_ = 4;
  version = read<uint32_t>("the version");
  if (version != 2 && version != 3) {
    fail("{}: GGUF version {}, expected 2 or 3 (little endian)", file_, version);
  }
  const auto tensor_count = read<uint64_t>("the tensor count");
  const auto key_count = read<uint64_t>("the metadata count");
  if (key_count > kMaxKeys) {
    fail("{}: {} metadata keys, expected at most {}", file_, key_count, kMaxKeys);
  }
  if (tensor_count > kMaxTensors) {
    fail("{}: {} tensors, expected at most {}", file_, tensor_count, kMaxTensors);
  }
  read_metadata(key_count);
  for (uint64_t i = 0; i < tensor_count; ++i) tensors.push_back(read_tensor());
  place_tensors(alignment());
}

template <typename T>
T GgufParser::read(const char* what) {
  if (left() < sizeof(T)) {
    fail("{}: truncated: {} at byte {} is past the end of the file", file_, what, position_);
  }
  T value;
  std::memcpy(&value, bytes_.data() + position_, sizeof(T));
  position_ += sizeof(T);
  return value;
}

std::string_view GgufParser::read_string(const char* what) {
  const auto length = read<uint64_t>(what);
  if (length > left()) {
    fail("{}: truncated: {} at byte {} is {} bytes long, {} are left", file_, what, position_,
         length, left());
  }
  std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_,
                        static_cast<size_t>(length));
  position_ += static_cast<size_t>(length);
  return text;
}

void GgufParser::read_metadata(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    std::string_view text = read_string("a metadata key");
    if (text.empty() || text.size() > kMaxNameBytes) {
      fail("{}: a metadata key of {} bytes, expected 1 to {}", file_, text.size(), kMaxNameBytes);
    }
    std::string key(text);
    const size_t start = position_;
    GgufValue value = read_value(read<uint32_t>("a metadata type"), key);
    metadata.encoded_.push_back(bytes_.subspan(start, position_ - start));
    if (!metadata.index_.emplace(key, metadata.entries_.size()).second) {
      fail("{}: metadata key {} stands there twice", file_, printable(key));
    }
    metadata.entries_.emplace_back(std::move(key), std::move(value));
  }
}

GgufValue GgufParser::read_value(uint32_t type, const std::string& key) {
  constexpr const char* kWhat = "a metadata value";
  switch (type) {
    case kU8:
      return int64_t{read<uint8_t>(kWhat)};
    case kI8:
      return int64_t{read<int8_t>(kWhat)};
    case kU16:
      return int64_t{read<uint16_t>(kWhat)};
    case kI16:
      return int64_t{read<int16_t>(kWhat)};
    case kU32:
      return int64_t{read<uint32_t>(kWhat)};
    case kI32:
      return int64_t{read<int32_t>(kWhat)};
    case kI64:
      return read<int64_t>(kWhat);
    case kF32:
      return double{read<float>(kWhat)};
    case kF64:
      return read<double>(kWhat);
    case kBool:
      return read<uint8_t>(kWhat) != 0;
    case kString:
      return read_string(kWhat);
    case kArray:
      return read_array(key);
    case kU64: {
      const auto value = read<uint64_t>(kWhat);
      if (value > INT64_MAX) {
        fail("{}: metadata {} is {}, expected at most 2^63-1", file_, printable(key), value);
      }
      return static_cast<int64_t>(value);
    }
    default:
      fail("{}: metadata {} has the unknown type {}", file_, printable(key), type);
  }
}

GgufValue GgufParser::read_array(const std::string& key) {
  const auto type = read<uint32_t>("an array's type");
  const auto count = read<uint64_t>("an array's length");
  if (type >= kTypeCount || type == kArray) {
    fail("{}: metadata {} is an array of type {}, which is not supported", file_, printable(key),
         type);
  }
  if (count > left() / kMinBytes[type]) {
    fail("{}: truncated: metadata {} has {} elements, {} bytes are left", file_, printable(key),
         count, left());
  }
  array_elements_ += count;
  if (array_elements_ > kMaxArrayElements) {
    fail("{}: over {} elements in metadata arrays", file_, kMaxArrayElements);
  }
  auto fill = [&](auto values) -> GgufValue {
    using T = typename decltype(values)::value_type;
    values.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) values.push_back(std::get<T>(read_value(type, key)));
    return values;
  };
  if (type == kString) return fill(std::vector<std::string_view>());
  if (type == kBool) return fill(std::vector<bool>());
  if (type == kF32 || type == kF64) return fill(std::vector<double>());
  return fill(std::vector<int64_t>());
}

GgufTensorEntry GgufParser::read_tensor() {
  GgufTensorEntry entry;
  std::string_view name = read_string("a tensor's name");
  if (name.empty() || name.size() > kMaxNameBytes) {
    fail("{}: a tensor name of {} bytes, expected 1 to {}", file_, name.size(), kMaxNameBytes);
  }
  entry.name = name;
  const auto dimensions = read<uint32_t>("a tensor's dimension count");
  if (dimensions == 0 || dimensions > kMaxDimensions) {
    fail("{}: tensor {} has {} dimensions, expected 1 to {}", file_, printable(name), dimensions,
         kMaxDimensions);
  }
  for (uint32_t i = 0; i < dimensions; ++i) {
    const auto size = read<uint64_t>("a tensor's size");
    if (size == 0 || size > INT64_MAX) {
      fail("{}: tensor {} has size {} in dimension {}, expected 1 to 2^63-1", file_,
           printable(name), size, i);
    }
    entry.sizes.push_back(static_cast<int64_t>(size));
  }
  entry.type = read<uint32_t>("a tensor's type");
  offsets_.push_back(read<uint64_t>("a tensor's offset"));
  return entry;
}

uint64_t GgufParser::alignment() const {
  const int64_t value = metadata.get<int64_t>("general.alignment").value_or(32);
  if (value < 1 || value > (1 << 20) || (value & (value - 1)) != 0) {
    fail("{}: general.alignment is {}, expected a power of two up to 2^20", file_, value);
  }
  return static_cast<uint64_t>(value);
}

void GgufParser::place_tensors(uint64_t alignment) {
  if (tensors.empty()) return;
  const uint64_t start = (position_ + alignment - 1) / alignment * alignment;
  const uint64_t size = start <= bytes_.size() ? bytes_.size() - start : 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (offsets_[i] % alignment != 0) {
      fail("{}: tensor {} is at offset {}, which is not a multiple of {}", file_,
           printable(tensors[i].name), offsets_[i], alignment);
    }
    if (offsets_[i] >= size) {
      fail("{}: truncated: tensor {} is at offset {} of {} bytes of data", file_,
           printable(tensors[i].name), offsets_[i], size);
    }
    tensors[i].data = bytes_.subspan(static_cast<size_t>(start + offsets_[i]));
  }
}

}  // namespace orthrus
