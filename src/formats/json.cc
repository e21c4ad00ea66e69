#include "formats/json.h"

#include "base/error.h"
#include "base/mapped_file.h"

namespace orthrus {

nlohmann::json parse_json(std::string_view text, const std::string& where, int max_depth) {
  using nlohmann::json;
  auto limit_depth = [&](int depth, json::parse_event_t, json&) {
    if (depth > max_depth) fail("{}: JSON nested deeper than {} levels", where, max_depth);
    return true;
  };
  try {
    return json::parse(text, limit_depth);
  } catch (const json::parse_error& error) {
    fail("{}: not valid JSON (at byte {})", where, error.byte);
  } catch (const json::exception&) {
    fail("{}: not valid JSON (a number out of range)", where);
  }
}

nlohmann::json read_json_file(const std::string& path, size_t max_bytes) {
  MappedFile file(path);
  std::span<const std::byte> bytes = file.bytes();
  if (bytes.size() > max_bytes) {
    fail("{}: {} bytes, expected at most {}", path, bytes.size(), max_bytes);
  }
  return parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace orthrus
