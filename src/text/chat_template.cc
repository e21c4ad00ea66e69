#include "text/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "formats/file_exists.h"
#include "formats/gguf_keys.h"
#include "formats/gguf_magic.h"
#include "text/content_parts.h"
#include "text/jinja_interpreter.h"
#include "text/jinja_json.h"
#include "text/jinja_parser.h"

namespace orthrus {

namespace {

using Json = nlohmann::ordered_json;
using SpecialTokens = decltype(TemplateSource::special_tokens);

constexpr size_t kMaxSourceBytes = 4 << 20;
constexpr size_t kMaxConfigBytes = 64 << 20;

std::string read_text(const std::filesystem::path& path, size_t most) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) fail("{}: cannot be read: {}", path.string(), error.message());
  if (size > most) fail("{}: {} bytes, expected at most {}", path.string(), size, most);
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  if (!file.read(text.data(), static_cast<std::streamsize>(size))) {
    fail("{}: cannot be read", path.string());
  }
  return text;
}

Json read_json(const std::filesystem::path& path) {
  const std::string text = read_text(path, kMaxConfigBytes);
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail("{}: expected a JSON object", path.string());
  return json;
}

/// Errors are one line of bearable length, whatever of the template they quote.
[[noreturn]] void fail_in_one_line(std::string message) {
  constexpr size_t kMaxBytes = 1000;
  size_t size = std::min(message.size(), kMaxBytes);
  while (size < message.size() && (static_cast<unsigned char>(message[size]) & 0xc0) == 0x80)
    --size;
  const bool cut = size < message.size();
  message.resize(size);
  std::replace_if(
      message.begin(), message.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  throw Error(ErrorKind::kInput, cut ? message + "..." : message);
}

/// "chat_template": the text, or a list of {name, template} with a "default".
std::optional<std::string> template_of(const Json& config, const std::string& path) {
  const auto found = config.find("chat_template");
  if (found == config.end() || found->is_null()) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) fail("{}: chat_template is neither a string nor a list", path);
  for (const Json& entry : *found) {
    if (!entry.is_object() || !entry.contains("name") || entry["name"] != "default") continue;
    if (entry.contains("template") && entry["template"].is_string()) {
      return entry["template"].get<std::string>();
    }
  }
  fail("{}: the list chat_template has no template named default", path);
}

/// "bos_token" and "eos_token": a string, or {"content": string}.
SpecialTokens special_tokens_of(const Json& config) {
  SpecialTokens tokens;
  for (const char* name : {"bos_token", "eos_token"}) {
    auto found = config.find(name);
    if (found == config.end()) continue;
    const Json& token = *found;
    if (token.is_string()) {
      tokens.emplace_back(name, token.get<std::string>());
    } else if (token.is_object() && token.contains("content") && token["content"].is_string()) {
      tokens.emplace_back(name, token["content"].get<std::string>());
    }
  }
  return tokens;
}

SpecialTokens special_tokens_of(const GgufMetadata& metadata) {
  SpecialTokens tokens;
  const auto texts = metadata.get<std::vector<std::string_view>>(gguf_key::kTokens);
  if (!texts) return tokens;
  for (const auto& [name, key] :
       {std::pair("bos_token", gguf_key::kBos), std::pair("eos_token", gguf_key::kEnds[0])}) {
    const auto id = metadata.get<int64_t>(key);
    if (!id) continue;
    if (*id < 0 || static_cast<size_t>(*id) >= texts->size()) {
      fail("{} is {}, expected below {}", key, *id, texts->size());
    }
    tokens.emplace_back(name, (*texts)[static_cast<size_t>(*id)]);
  }
  return tokens;
}

}  // namespace

struct ChatTemplate::Impl {
  jinja::Block block;
  SpecialTokens special_tokens;
};

ChatTemplate::ChatTemplate(std::string_view source) : impl_(std::make_unique<Impl>()) {
  if (source.size() > kMaxSourceBytes) {
    fail("chat template has {} bytes, expected at most {}", source.size(), kMaxSourceBytes);
  }
  try {
    impl_->block = jinja::parse(source);
  } catch (const Error& error) {
    fail_in_one_line(error.what());
  }
}

ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

TemplateSource read_template_source(const std::string& path) {
  namespace fs = std::filesystem;
  TemplateSource source;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const fs::path config_path = fs::path(path) / "tokenizer_config.json";
    const fs::path template_path = fs::path(path) / "chat_template.jinja";
    const Json config = file_exists(config_path.string()) ? read_json(config_path) : Json::object();
    source.special_tokens = special_tokens_of(config);
    source.text = file_exists(template_path.string()) ? read_text(template_path, kMaxSourceBytes)
                                                      : template_of(config, config_path.string());
  } else if (path.ends_with(".gguf") || has_gguf_magic(path)) {
    const GgufFile file(path);
    const auto text = file.metadata().get<std::string_view>(gguf_key::kChatTemplate);
    if (text) source.text = std::string(*text);
    source.special_tokens = special_tokens_of(file.metadata());
  } else {
    source.text = read_text(path, kMaxSourceBytes);
  }
  return source;
}

std::unique_ptr<ChatTemplate> ChatTemplate::load(const std::string& path) {
  TemplateSource source = read_template_source(path);
  if (!source.text) return nullptr;
  auto loaded = std::make_unique<ChatTemplate>(*source.text);
  loaded->impl_->special_tokens = std::move(source.special_tokens);
  return loaded;
}

std::string ChatTemplate::render(const Json& context) const {
  if (!context.is_object()) fail("the template's context must be a JSON object");
  if (!has_content_parts(context)) return render_as_is(context);
  return render_as_is(
      fitted_parts(context, [this](const Json& trial) { return render_as_is(trial); }));
}

std::string ChatTemplate::render_as_is(const Json& context) const {
  jinja::Interpreter interpreter;
  try {
    const jinja::Value variables = jinja::from_json(interpreter.budget(), context);
    jinja::Entries entries = variables.as<jinja::Mapping>()->entries;
    for (const auto& [name, text] : impl_->special_tokens) {
      if (!context.contains(name)) {
        entries.emplace_back(jinja::Value::string(name), jinja::Value::string(text));
      }
    }
    return interpreter.render(impl_->block, std::move(entries));
  } catch (const jinja::RaisedByTemplate& raised) {
    fail_in_one_line(raised.message);
  } catch (const Error& error) {
    fail_in_one_line(fmt::format("chat template line {}: {}", interpreter.line(), error.what()));
  }
}

}  // namespace orthrus
