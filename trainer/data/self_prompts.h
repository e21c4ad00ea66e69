#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "trainer/data/answers.h"

namespace orthrus::train {

/// Whether a text that the model wrote as a user's turn is fit for a prompt: of a few words to a
/// few paragraphs, mostly in ASCII, and not the same words over and over. That is no test of the
/// language: what is written in Latin letters with few accents passes, other scripts do not.
bool usable_self_prompt(const std::string& text);

struct SelfPromptRequest {
  std::string header;               ///< the chat template up to where a user's text begins
  std::vector<std::string> starts;  ///< beginnings the texts take in turn; none: all their own
  std::string stop;                 ///< what ends a user's turn in the template
  int64_t count = 0;
  int64_t batch = 16;  ///< sequences that share passes
  uint64_t seed = 0;
};

/// User turns written by the model itself after the header and a start, sampled at temperature 1,
/// filtered, without repeats. Error(kInput) where the model hardly ever writes a usable one.
std::vector<std::string> self_prompts(const SelfPromptRequest& request, const Tokenizer& tokenizer,
                                      Answerer& answerer);

}  // namespace orthrus::train
