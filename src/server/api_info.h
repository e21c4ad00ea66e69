#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/api_request.h"
#include "text/tokenizer.h"

namespace orthrus {

/// The model as /v1/models and /v1/models/NAME show it.
struct ModelCard {
  std::vector<std::string> names;  ///< ApiContext::models
  int64_t created = 0;             ///< seconds since 1970
  int64_t max_seq_len = 0;
  bool dual_view = false;  ///< has a diffusion view
};

nlohmann::ordered_json models_body(const ModelCard& card);
/// ApiError 404 for a name that is not served.
nlohmann::ordered_json model_body(const ModelCard& card, std::string_view name);

enum class ServerState : uint8_t { kLoading, kReady, kDraining };

/// {"status": "ok" | "loading" | "draining"}; the status is 200 where ready, else 503.
nlohmann::ordered_json health_body(ServerState state);
int health_status(ServerState state);

/// What POST /tokenize answers: llama-server's and vLLM's members together.
nlohmann::ordered_json tokenize_body(const TokenizeRequest& request, std::span<const int32_t> ids,
                                     const Tokenizer& tokenizer, int64_t max_seq_len);
/// What POST /detokenize answers: the text as "content" (llama-server) and "prompt" (vLLM).
nlohmann::ordered_json detokenize_body(std::span<const int32_t> ids, const Tokenizer& tokenizer);

/// The API as an OpenAPI 3.1 document (JSON): what GET /openapi.json answers.
std::string_view openapi_json();

}  // namespace orthrus
