#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/model_config.h"

namespace orthrus {

/// The tokens a generation starts from: `input_ids`, or where there are none the model's bos (else
/// eos) token. Error(kInput) where they are not of the vocabulary or leave no room for an answer in
/// `max_seq_len`.
std::vector<int32_t> request_prompt(std::span<const int32_t> input_ids, const ModelConfig& config,
                                    int64_t max_seq_len);

}  // namespace orthrus
