#pragma once

#include "server/api_json.h"
#include "server/api_request.h"

namespace orthrus {

/// Reads what says what the answer must look like, whoever's name it has: OpenAI's and
/// llama-server's response_format, llama-server's grammar, vLLM's guided_* and structured_outputs.
/// ApiError where two of them do.
void read_form(ObjectReader& body, GenerationRequest& request);

}  // namespace orthrus
