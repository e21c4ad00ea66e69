#include "model/packed_cache_header.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/checksum.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/json.h"
#include "model/packed_cache.h"

namespace orthrus {
namespace {

using nlohmann::json;

constexpr size_t kPage = 4096;  // where the first tensor begins
constexpr size_t kMaxHeader = size_t{16} << 20;

/// Fixed part of the file, in front of the header.
struct Preamble {
  std::array<char, 8> magic;
  uint64_t header_bytes;
  uint64_t header_checksum;
};

size_t data_begin(size_t text_bytes) {
  return (sizeof(Preamble) + text_bytes + kPage - 1) / kPage * kPage;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

[[noreturn]] void damaged(const std::string& path, std::string_view what) {
  fail("{}: damaged: {}", path, what);
}

}  // namespace

std::vector<std::byte> write_packed_cache_header(const json& fields) {
  const std::string text = fields.dump();
  Preamble preamble{};
  std::copy(kPackedCacheMagic.begin(), kPackedCacheMagic.end(), preamble.magic.begin());
  preamble.header_bytes = text.size();
  preamble.header_checksum = checksum(bytes_of(text));
  std::vector<std::byte> front(data_begin(text.size()));
  std::memcpy(front.data(), &preamble, sizeof(preamble));
  std::memcpy(front.data() + sizeof(preamble), text.data(), text.size());
  return front;
}

PackedCacheHeader read_packed_cache_header(std::span<const std::byte> file,
                                           const std::string& path) {
  Preamble preamble;
  if (file.size() < sizeof(preamble)) damaged(path, "too short");
  std::memcpy(&preamble, file.data(), sizeof(preamble));
  if (std::string_view(preamble.magic.data(), preamble.magic.size()) != kPackedCacheMagic) {
    fail("{}: not a packed cache", path);
  }
  const std::span<const std::byte> rest = file.subspan(sizeof(preamble));
  if (preamble.header_bytes > std::min(rest.size(), kMaxHeader)) {
    damaged(path, "its header is cut");
  }
  const std::span<const std::byte> text = rest.first(preamble.header_bytes);
  if (checksum(text) != preamble.header_checksum) {
    damaged(path, "the checksum of its header differs");
  }
  json fields = parse_json({reinterpret_cast<const char*>(text.data()), text.size()}, path);
  if (!fields.is_object()) damaged(path, "its header is not an object");
  return {std::move(fields), data_begin(text.size())};
}

const json& packed_cache_field(const json& fields, const char* name, const std::string& path) {
  const auto found = fields.find(name);
  if (found == fields.end()) damaged(path, fmt::format("its header lacks \"{}\"", name));
  return *found;
}

std::string packed_cache_key(const std::string& path) {
  const MappedFile file(path);
  const PackedCacheHeader header = read_packed_cache_header(file.bytes(), path);
  const json& key = packed_cache_field(header.fields, "key", path);
  if (!key.is_string()) damaged(path, "its key is no text");
  return key.get<std::string>();
}

}  // namespace orthrus
