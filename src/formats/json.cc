#include "formats/json.h"

#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/json_walk.h"

namespace orthrus {

namespace {

class DepthCheck : public JsonWalk<nlohmann::json> {
 public:
  DepthCheck(const std::string& where, int most) : where_(where), most_(most) {}

 private:
  void on_begin(int depth, bool /*object*/) override {
    if (depth > most_) fail("{}: JSON nested deeper than {} levels", where_, most_);
  }
  void on_error(std::size_t byte, bool out_of_range) override {
    if (out_of_range) fail("{}: not valid JSON (a number out of range)", where_);
    fail("{}: not valid JSON (at byte {})", where_, byte);
  }

  const std::string& where_;
  int most_;
};

}  // namespace

nlohmann::json parse_json(std::string_view text, const std::string& where, int max_depth) {
  DepthCheck check(where, max_depth);
  nlohmann::json::sax_parse(text, &check);
  return nlohmann::json::parse(text);
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
