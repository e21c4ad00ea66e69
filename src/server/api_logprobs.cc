#include "server/api_logprobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "text/utf8.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

// JSON has no infinity; OpenAI's value for what is impossible.
double finite(double logprob) { return std::max(logprob, -9999.0); }

std::string_view bytes_of(const Tokenizer& tokenizer, int32_t id) {
  return tokenizer.has_token(id) ? tokenizer.token_bytes(id) : std::string_view();
}

size_t count_characters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

Json chat_token(const Tokenizer& tokenizer, int32_t id, double logprob) {
  Json bytes = Json::array();
  for (char byte : bytes_of(tokenizer, id)) bytes.push_back(static_cast<uint8_t>(byte));
  return {{"token", token_text(tokenizer, id)},
          {"logprob", finite(logprob)},
          {"bytes", std::move(bytes)}};
}

Json empty_lists() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

}  // namespace

std::string token_text(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes = bytes_of(tokenizer, id);
  for (size_t at = 0; at < bytes.size();) {
    const Utf8Char character = utf8_at(bytes, at);
    at += character.length;
    if (character.kind == Utf8Char::Kind::kValid) continue;
    std::string spelled = "bytes:";
    for (char byte : bytes) spelled += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
    return spelled;
  }
  return std::string(bytes);
}

Json chat_logprobs(const Tokenizer& tokenizer, std::span<const int32_t> ids,
                   std::span<const TokenLogprobs> logprobs) {
  ORTHRUS_CHECK(ids.size() == logprobs.size());
  Json content = Json::array();
  for (size_t i = 0; i < ids.size(); ++i) {
    Json token = chat_token(tokenizer, ids[i], logprobs[i].logprob);
    Json top = Json::array();
    for (const auto& [id, logprob] : logprobs[i].top) {
      top.push_back(chat_token(tokenizer, id, logprob));
    }
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

// A token that does not go on with the character that was begun starts behind its U+FFFD.
size_t CompletionLogprobs::offset_of(std::string_view bytes) const {
  if (partial_.empty() || bytes.empty()) return characters_;
  const std::string joined = partial_ + bytes.front();
  return characters_ + (utf8_at(joined, 0).kind == Utf8Char::Kind::kInvalid ? 1 : 0);
}

void CompletionLogprobs::add(Json& out, int32_t id, const TokenLogprobs* logprobs, bool in_text) {
  const std::string_view bytes = in_text ? bytes_of(tokenizer_, id) : std::string_view();
  out["tokens"].push_back(token_text(tokenizer_, id));
  out["text_offset"].push_back(offset_of(bytes));
  partial_ += bytes;
  std::string whole;
  drain_utf8(partial_, false, whole);
  characters_ += count_characters(whole);
  if (!logprobs) {
    out["token_logprobs"].push_back(nullptr);
    out["top_logprobs"].push_back(nullptr);
    return;
  }
  // The most likely tokens and the chosen one; of tokens that look alike the likeliest.
  Json top = Json::object();
  for (const auto& [other, logprob] : logprobs->top) {
    top.emplace(token_text(tokenizer_, other), finite(logprob));
  }
  top.emplace(token_text(tokenizer_, id), finite(logprobs->logprob));
  out["token_logprobs"].push_back(finite(logprobs->logprob));
  out["top_logprobs"].push_back(std::move(top));
}

Json CompletionLogprobs::prompt(std::span<const int32_t> ids,
                                std::span<const TokenLogprobs> logprobs, size_t hidden) {
  ORTHRUS_CHECK(ids.empty() || logprobs.size() + 1 == ids.size());
  Json out = empty_lists();
  for (size_t i = 0; i < ids.size(); ++i) {
    add(out, ids[i], i == 0 ? nullptr : &logprobs[i - 1], i >= hidden);
  }
  // The answer is decoded by itself: what the prompt leaves unfinished stays so.
  if (!partial_.empty()) ++characters_;
  partial_.clear();
  return out;
}

Json CompletionLogprobs::answer(std::span<const int32_t> ids,
                                std::span<const TokenLogprobs> logprobs) {
  ORTHRUS_CHECK(ids.size() == logprobs.size());
  Json out = empty_lists();
  for (size_t i = 0; i < ids.size(); ++i) {
    const bool in_text = tokenizer_.has_token(ids[i]) && !tokenizer_.is_special(ids[i]);
    add(out, ids[i], &logprobs[i], in_text);
  }
  return out;
}

void append_completion_logprobs(Json& lists, const Json& more) {
  if (lists.is_null()) lists = empty_lists();
  for (const auto& [name, list] : more.items()) {
    for (const Json& value : list) lists[name].push_back(value);
  }
}

}  // namespace orthrus
