#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// A line of a JSONL file of prompts. It holds one form of prompt: the first that is there of
/// "token_ids", "prompt_ids" (taken as they are), "messages" (of a chat), "prompt", "question" (a
/// user's text).
struct PromptLine {
  std::string where;  ///< file and line, for messages
  std::optional<std::vector<int32_t>> token_ids;
  std::optional<nlohmann::ordered_json> messages;
  std::optional<std::string> prompt;
  std::optional<nlohmann::ordered_json> tools;   ///< for the chat template
  std::optional<nlohmann::ordered_json> kwargs;  ///< variables of the chat template
  std::optional<int64_t> max_tokens;
  std::optional<uint64_t> seed;
  nlohmann::ordered_json extra;  ///< all other keys, further forms of the prompt among them

  /// Adds messages, tools and kwargs to a chat template request (template_request.h).
  void add_chat(nlohmann::ordered_json& request) const;
};

/// At most `limit` lines (0: all); blank ones are skipped. Keys keep their order, which a template
/// prints. Error(kInput) with `name` ("-": stdin) and the line's number where a line is not as
/// described.
std::vector<PromptLine> parse_prompt_lines(std::string_view text, const std::string& name,
                                           int64_t limit = 0);

}  // namespace orthrus
