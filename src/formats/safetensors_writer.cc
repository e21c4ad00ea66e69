#include "formats/safetensors_writer.h"

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "formats/tensor_layout.h"

namespace orthrus {
namespace {

constexpr size_t kAlignment = 8;  // of the data, as the format asks of writers

/// Length, JSON and padding; adds up the data bytes in `data_bytes`.
std::string make_header(const std::vector<SafetensorsEntry>& entries,
                        const std::map<std::string, std::string>& metadata, uint64_t& data_bytes) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const SafetensorsEntry& entry : entries) {
    std::optional<uint64_t> bytes = tensor_bytes(entry.type, entry.shape);
    ORTHRUS_CHECK(bytes && traits(entry.type).block_elements == 1);
    header[entry.name] = {{"dtype", std::string(traits(entry.type).name)},
                          {"shape", entry.shape},
                          {"data_offsets", {data_bytes, data_bytes + *bytes}}};
    data_bytes += *bytes;
  }
  // Text from outside (metadata) may not be UTF-8: replaced rather than refused.
  std::string json = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>(uint64_t{json.size()} >> shift & 0xff));
  }
  return out + json;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path,
                                     const std::vector<SafetensorsEntry>& entries,
                                     const std::map<std::string, std::string>& metadata)
    : file_(path) {
  const std::string header = make_header(entries, metadata, expected_);
  file_.append(std::as_bytes(std::span(header)));
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  appended_ += bytes.size();
  ORTHRUS_CHECK(appended_ <= expected_);
  file_.append(bytes);
}

void SafetensorsWriter::commit() {
  ORTHRUS_CHECK(appended_ == expected_);
  file_.commit();
}

}  // namespace orthrus
