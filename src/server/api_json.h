#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_error.h"

namespace orthrus {

/// Bounds of a request body beside its bytes: what is built of it stays small and shallow.
inline constexpr int kMaxJsonDepth = 64;
inline constexpr size_t kMaxJsonValues = 1'000'000;
inline constexpr size_t kMaxObjectKeys = 512;

/// Parses JSON that came over the network; keys keep their order, which templates print. ApiError
/// 400 for what is not JSON (RFC 8259: no NaN, no invalid UTF-8), for duplicate keys, and beyond
/// the bounds above. `what` the text is begins the messages.
nlohmann::ordered_json parse_request_json(std::string_view text,
                                          std::string_view what = "The body");

/// JSON text, valid UTF-8 whatever the strings in it hold.
std::string dump_json_line(const nlohmann::ordered_json& value);

/// The integer that a value is: 1.0 too, which JSON Schema calls one and some clients send.
std::optional<int64_t> whole_number(const nlohmann::ordered_json& value);

/// Reads the members of an object that a client sent. A member that is null counts as absent, as
/// OpenAI has it. Every getter makes its name known; finish() refuses members that nobody asked
/// for. Errors are ApiErrors (400) that name the parameter.
class ObjectReader {
 public:
  /// `path` is the object's own name in messages ("" for the body). Both must outlive the reader.
  ObjectReader(const nlohmann::ordered_json& object, std::string path);

  /// The member, or null where it is absent.
  const nlohmann::ordered_json* find(const char* name);
  bool has(const char* name) { return find(name) != nullptr; }

  bool boolean(const char* name, bool otherwise);
  int64_t integer(const char* name, int64_t least, int64_t most, int64_t otherwise);
  /// From `least` (excluded where `above`) to `most`.
  double number(const char* name, double least, double most, double otherwise, bool above = false);
  /// Of at most `most` bytes.
  std::string string(const char* name, size_t most, const std::string& otherwise = {});
  /// One of `choices`; its index, or `otherwise` where absent.
  int choice(const char* name, const std::vector<std::string>& choices, int otherwise);
  /// Null where absent.
  const nlohmann::ordered_json* object(const char* name);
  const nlohmann::ordered_json* array(const char* name, size_t most);
  /// Refused with that reason where present.
  void refuse(const char* name, const std::string& reason);

  void finish() const;

  /// "messages[0].content": the name of a member in messages.
  std::string path_of(std::string_view name) const;
  /// 400 about a member.
  [[noreturn]] void fail(const char* name, const std::string& expected) const;

 private:
  const nlohmann::ordered_json& object_;
  std::string path_;
  std::vector<std::string> known_;
};

/// How a value from outside is shown in a message: its type, and itself where it is short.
std::string shown(const nlohmann::ordered_json& value);

}  // namespace orthrus
