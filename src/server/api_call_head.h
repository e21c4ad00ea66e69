#pragma once

#include <string>
#include <string_view>

namespace orthrus {

/// The beginning of a tool call: {"name": "f", "arguments": {   or the whole of   {"name": "f"}
struct CallHead {
  enum class Kind {
    kPartial,     ///< may become one
    kNone,        ///< cannot
    kArguments,   ///< arguments begin (with their brace) at `end`
    kNoArguments  ///< a whole call without arguments, `end` bytes
  };
  Kind kind = Kind::kPartial;
  size_t end = 0;
  std::string name;
};

/// Reads the text behind a <tool_call>. Time is bounded: longer heads than 1 KiB are none.
CallHead read_call_head(std::string_view text);

}  // namespace orthrus
