#include "server/api_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "base/nearest.h"
#include "formats/json_walk.h"
#include "formats/printable.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

/// Throws where the text is no JSON or goes beyond the bounds.
class BoundsCheck : public JsonWalk<Json> {
 public:
  explicit BoundsCheck(std::string_view what) : what_(what) {}

 private:
  void on_value() override {
    if (++values_ > kMaxJsonValues) {
      throw bad_request(fmt::format("{} holds more than {} values.", what_, kMaxJsonValues));
    }
  }
  void on_begin(int depth, bool object) override {
    if (depth > kMaxJsonDepth) {
      throw bad_request(fmt::format("{} is nested deeper than {} levels.", what_, kMaxJsonDepth));
    }
    if (object) keys_.emplace_back();
    on_value();
  }
  void on_end(bool object) override {
    if (object) keys_.pop_back();
  }
  void on_key(const std::string& name) override {
    if (!keys_.back().insert(name).second) {
      throw bad_request(fmt::format("The key \"{}\" occurs twice in one object.", printable(name)),
                        printable(name));
    }
    if (keys_.back().size() > kMaxObjectKeys) {
      throw bad_request(fmt::format("An object has more than {} keys.", kMaxObjectKeys));
    }
  }
  void on_error(std::size_t byte, bool out_of_range) override {
    if (out_of_range) {
      throw bad_request(fmt::format("{} is not valid JSON (a number out of range).", what_));
    }
    throw bad_request(fmt::format("{} is not valid JSON (at byte {}).", what_, byte));
  }

  const std::string_view what_;
  std::vector<std::unordered_set<std::string>> keys_;  // of the objects around the place
  size_t values_ = 0;
};

}  // namespace

Json parse_request_json(std::string_view text, std::string_view what) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw bad_request(fmt::format("{} is empty, expected a JSON object.", what));
  }
  BoundsCheck check(what);
  Json::sax_parse(text, &check);
  return Json::parse(text);
}

std::string dump_json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string shown(const Json& value) {
  constexpr size_t kShort = 40;
  if (value.is_object()) return value.empty() ? "an empty object" : "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_string() && value.get_ref<const std::string&>().size() > kShort) return "a string";
  return printable(dump_json_line(value));
}

std::optional<int64_t> whole_number(const Json& value) {
  if (value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX) return std::nullopt;
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const auto number = value.get<double>();
  const bool whole = number == std::floor(number) && std::abs(number) < 0x1p53;
  return whole ? std::optional(static_cast<int64_t>(number)) : std::nullopt;
}

ObjectReader::ObjectReader(const Json& object, std::string path)
    : object_(object), path_(std::move(path)) {
  if (object.is_object()) return;
  throw bad_request(fmt::format("{}: expected an object, found {}.",
                                path_.empty() ? "The body" : path_, shown(object)),
                    path_);
}

std::string ObjectReader::path_of(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
}

void ObjectReader::fail(const char* name, const std::string& expected) const {
  const std::string path = path_of(name);
  const auto found = object_.find(name);
  throw bad_request(fmt::format("{}: expected {}, found {}.", path, expected,
                                found == object_.end() ? "nothing" : shown(*found)),
                    path, found == object_.end() ? "missing_required_parameter" : "invalid_value");
}

const Json* ObjectReader::find(const char* name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool ObjectReader::boolean(const char* name, bool otherwise) {
  const Json* value = find(name);
  if (!value) return otherwise;
  if (!value->is_boolean()) fail(name, "true or false");
  return value->get<bool>();
}

int64_t ObjectReader::integer(const char* name, int64_t least, int64_t most, int64_t otherwise) {
  const Json* value = find(name);
  if (!value) return otherwise;
  const std::optional<int64_t> number = whole_number(*value);
  if (!number || *number < least || *number > most) {
    fail(name, fmt::format("a whole number from {} to {}", least, most));
  }
  return *number;
}

double ObjectReader::number(const char* name, double least, double most, double otherwise,
                            bool above) {
  const Json* value = find(name);
  if (!value) return otherwise;
  const double number = value->is_number() ? value->get<double>() : least - 1;
  if (number < least || number > most || (above && number == least)) {
    fail(name, fmt::format("a number {} {} {} {}", above ? "above" : "from", least,
                           above ? "up to" : "to", most));
  }
  return number;
}

std::string ObjectReader::string(const char* name, size_t most, const std::string& otherwise) {
  const Json* value = find(name);
  if (!value) return otherwise;
  if (!value->is_string()) fail(name, "a string");
  if (value->get_ref<const std::string&>().size() > most) {
    fail(name, fmt::format("a string of at most {} bytes", most));
  }
  return value->get<std::string>();
}

int ObjectReader::choice(const char* name, const std::vector<std::string>& choices, int otherwise) {
  const Json* value = find(name);
  if (!value) return otherwise;
  const auto found = value->is_string()
                         ? std::find(choices.begin(), choices.end(), value->get<std::string>())
                         : choices.end();
  if (found == choices.end()) {
    fail(name, fmt::format("{}\"{}\"", choices.size() > 1 ? "one of " : "",
                           fmt::join(choices, "\", \"")));
  }
  return static_cast<int>(found - choices.begin());
}

const Json* ObjectReader::object(const char* name) {
  const Json* value = find(name);
  if (value && !value->is_object()) fail(name, "an object");
  return value;
}

const Json* ObjectReader::array(const char* name, size_t most) {
  const Json* value = find(name);
  if (!value) return nullptr;
  if (!value->is_array()) fail(name, "a list");
  if (value->size() > most) {
    throw bad_request(fmt::format("{}: expected at most {} elements, found {}.", path_of(name),
                                  most, value->size()),
                      path_of(name), "invalid_value");
  }
  return value;
}

void ObjectReader::refuse(const char* name, const std::string& reason) {
  if (!find(name)) return;
  throw bad_request(fmt::format("{} is not supported: {}.", path_of(name), reason), path_of(name),
                    "unsupported_parameter");
}

void ObjectReader::finish() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string path = path_of(printable(key));
    throw bad_request(fmt::format("Unknown parameter: {}{}.", path, nearest_hint(key, known_)),
                      path, "unknown_parameter");
  }
}

}  // namespace orthrus
