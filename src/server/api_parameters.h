#pragma once

#include "server/api_json.h"
#include "server/api_request.h"

namespace orthrus {

/// Most choices of one prompt, and most answers of one request.
inline constexpr int64_t kMaxChoices = 16;
inline constexpr size_t kMaxAnswers = 1024;

/// Reads "model": 404 for a name that is not served.
void read_model(ObjectReader& body, const ApiContext& context);

/// Reads all parameters that chats and completions share, from "n" to "priority", and those that
/// are accepted without effect.
void read_generation(ObjectReader& body, const ApiContext& context, GenerationRequest& request);

/// ApiError for a min_tokens that the other options do not allow. Once all are read.
void check_end(const GenerateOptions& options);

/// Reads max_tokens or `other_name` (null: there is none): at least `least`; -1 where absent.
int64_t read_max_tokens(ObjectReader& body, const char* other_name, int64_t least);

/// Reads an array of token ids.
std::vector<int32_t> read_token_ids(const nlohmann::ordered_json& ids, const std::string& path,
                                    const ApiContext& context);

}  // namespace orthrus
