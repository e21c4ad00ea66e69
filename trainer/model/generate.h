#pragma once

#include <span>

#include "trainer/model/answer_request.h"
#include "trainer/model/ar_decoder.h"

namespace orthrus::train {

/// Answers requests with the AR view, `rows` at a time: where one ends, the next takes its place.
/// `on_answer` hears of answers as they end. A token is a function of the logits, the request's
/// seed and the token's position, so the batch matters to an answer only through rounding.
/// Error(kInput) where a prompt does not fit the model.
void generate(ArDecoder& decoder, std::span<const AnswerRequest> requests,
              const BatchOptions& options, const OnAnswer& on_answer);

}  // namespace orthrus::train
