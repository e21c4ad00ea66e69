#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "formats/gguf.h"

namespace orthrus {

/// What a model's files say of its chat template.
struct TemplateSource {
  std::optional<std::string> text;
  std::vector<std::pair<std::string, std::string>> special_tokens;  ///< bos_token, eos_token
};

/// From a directory (chat_template.jinja, else tokenizer_config.json's chat_template), a .jinja
/// file, or a .gguf file (tokenizer.chat_template).
TemplateSource read_template_source(const std::string& path);

/// A Jinja chat template, compiled once, with the semantics Hugging Face gives it: trim_blocks and
/// lstrip_blocks on, `raise_exception`, `tojson` without HTML escapes, `strftime_now`. A construct
/// it does not know is an Error(kInput) at compile time that names it and the line. Rendering is
/// bounded in steps, depth and output. Immutable; safe to use from many threads.
///
/// A message's content may be a list of parts [{"type": "text", "text": "..."}]. A template that
/// walks such lists gets them as they are, any other their texts joined with newlines
/// (content_parts.h says how it is told).
class ChatTemplate {
 public:
  explicit ChatTemplate(std::string_view source);
  /// From what read_template_source reads. Null where the model has none.
  static std::unique_ptr<ChatTemplate> load(const std::string& path);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ~ChatTemplate();

  /// context: the template's variables: messages, tools, add_generation_prompt, and any other (chat
  /// template kwargs such as enable_thinking). bos_token and eos_token are added by `load` from the
  /// model's files where the context does not set them. Errors raised by the template are
  /// Error(kInput) with the template's message.
  std::string render(const nlohmann::ordered_json& context) const;

 private:
  std::string render_as_is(const nlohmann::ordered_json& context) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orthrus
