#include "server/api_prompt.h"

#include <fmt/format.h>

#include <string_view>

#include "base/trimmed.h"
#include "server/api_error.h"

namespace orthrus {
namespace {

// The chat up to the end of the last message's text: templates trim it, and close it.
std::string cut_to_continue(std::string text, const ChatRequest& request) {
  const std::string& content =
      request.context.at("messages").back().at("content").get_ref<const std::string&>();
  // A thought within the content is often left out or moved by the template.
  std::string_view wanted = content;
  const size_t thought_end = wanted.rfind(kThinkEnd);
  if (thought_end != wanted.npos) {
    wanted.remove_prefix(thought_end + std::string_view(kThinkEnd).size());
  }
  if (text.find(content) != text.npos) wanted = content;
  wanted = trimmed(wanted);
  const size_t at = wanted.empty() ? text.npos : text.rfind(wanted);
  if (at == text.npos) {
    throw bad_request(
        "continue_final_message: the chat template does not write the last message as it is.",
        "continue_final_message", "invalid_value");
  }
  text.resize(at + wanted.size());
  return text;
}

// A model that never hears of the tools would only invent calls.
void check_tools_are_told(const ChatRequest& request, const ChatTemplate& chat_template,
                          const std::string& with_tools) {
  nlohmann::ordered_json context = request.context;
  context.erase("tools");
  if (chat_template.render(context) != with_tools) return;
  throw bad_request(
      "tools: the model's chat template knows none, so the model would not hear of them.", "tools",
      "unsupported_parameter");
}

Thought thought_of(std::string_view prompt, const ChatRequest& request) {
  if (!request.thinks) return Thought::kNone;
  if (request.continue_final) {
    const std::string& content =
        request.context.at("messages").back().at("content").get_ref<const std::string&>();
    const size_t begin = content.rfind(kThinkBegin);
    const size_t end = content.rfind(kThinkEnd);
    const bool open = begin != content.npos && (end == content.npos || end < begin);
    return open ? Thought::kOpen : Thought::kNone;
  }
  const std::string_view text = trimmed(prompt);
  if (text.ends_with(kThinkBegin)) return Thought::kOpen;
  return text.ends_with(kThinkEnd) ? Thought::kNone : Thought::kMayBegin;
}

}  // namespace

ChatPrompt render_chat(const ChatRequest& request, const ChatTemplate& chat_template) {
  ChatPrompt prompt;
  try {
    prompt.text = chat_template.render(request.context);
    if (request.tools) check_tools_are_told(request, chat_template, prompt.text);
  } catch (const Error& error) {
    throw api_error(error, "messages");
  }
  if (request.continue_final) prompt.text = cut_to_continue(std::move(prompt.text), request);
  prompt.thought = thought_of(prompt.text, request);
  return prompt;
}

GenerateOptions chat_options(const ChatRequest& request, const ChatPrompt& prompt, int64_t choice) {
  GenerateOptions options = request.choice_options(choice);
  const bool formed = !options.grammar.empty() || !options.json_schema.empty();
  if (formed && prompt.thought != Thought::kNone) {
    options.thinking_begin = prompt.thought == Thought::kOpen ? "" : kThinkBegin;
    options.thinking_end = kThinkEnd;
  }
  return options;
}

void check_prompt_bytes(size_t bytes, size_t max_token_bytes, int64_t max_seq_len) {
  const size_t most = static_cast<size_t>(max_seq_len) * max_token_bytes;
  if (bytes <= most) return;
  throw bad_request(fmt::format("The prompt has {} bytes, but the context holds {} tokens, which "
                                "are at most {} bytes.",
                                bytes, max_seq_len, most),
                    {}, "context_length_exceeded");
}

void check_prompt_length(int64_t tokens, int64_t max_seq_len) {
  if (tokens < max_seq_len) return;
  throw bad_request(
      fmt::format("The prompt has {} tokens, but the context holds {} and one must be left for the "
                  "answer.",
                  tokens, max_seq_len),
      {}, "context_length_exceeded");
}

}  // namespace orthrus
