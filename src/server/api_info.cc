#include "server/api_info.h"

#include <fmt/format.h>

#include <algorithm>

#include "formats/printable.h"
#include "server/api_error.h"
#include "server/api_logprobs.h"
#include "text/utf8.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

Json model_json(const ModelCard& card, std::string_view name) {
  return {{"id", name},
          {"object", "model"},
          {"created", card.created},
          {"owned_by", "orthrus"},
          {"max_model_len", card.max_seq_len},
          {"dual_view", card.dual_view}};
}

// llama-server's: the text, or the bytes where they are part of a character.
Json piece_json(const Tokenizer& tokenizer, int32_t id) {
  const std::string_view bytes =
      tokenizer.has_token(id) ? tokenizer.token_bytes(id) : std::string_view();
  if (token_text(tokenizer, id) == bytes) return bytes;
  Json list = Json::array();
  for (char byte : bytes) list.push_back(static_cast<uint8_t>(byte));
  return list;
}

}  // namespace

Json models_body(const ModelCard& card) {
  Json list = Json::array();
  for (const std::string& name : card.names) list.push_back(model_json(card, name));
  return {{"object", "list"}, {"data", std::move(list)}};
}

Json model_body(const ModelCard& card, std::string_view name) {
  if (std::find(card.names.begin(), card.names.end(), name) != card.names.end()) {
    return model_json(card, name);
  }
  throw model_not_found(name, card.names);
}

Json health_body(ServerState state) {
  static constexpr const char* kNames[] = {"loading", "ok", "draining"};
  return {{"status", kNames[static_cast<size_t>(state)]}};
}

int health_status(ServerState state) { return state == ServerState::kReady ? 200 : 503; }

Json tokenize_body(const TokenizeRequest& request, std::span<const int32_t> ids,
                   const Tokenizer& tokenizer, int64_t max_seq_len) {
  Json tokens = Json::array();
  Json texts = Json::array();
  for (int32_t id : ids) {
    tokens.push_back(request.with_pieces ? Json{{"id", id}, {"piece", piece_json(tokenizer, id)}}
                                         : Json(id));
    if (request.with_texts) texts.push_back(token_text(tokenizer, id));
  }
  Json body = {
      {"tokens", std::move(tokens)}, {"count", ids.size()}, {"max_model_len", max_seq_len}};
  if (request.with_texts) body["token_strs"] = std::move(texts);
  return body;
}

Json detokenize_body(std::span<const int32_t> ids, const Tokenizer& tokenizer) {
  std::vector<int32_t> known;
  for (int32_t id : ids) {
    if (tokenizer.has_token(id)) known.push_back(id);
  }
  std::string text, bytes = tokenizer.decode(known);
  drain_utf8(bytes, true, text);
  return {{"content", text}, {"prompt", text}};
}

}  // namespace orthrus
