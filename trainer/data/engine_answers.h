#pragma once

#include "trainer/data/answers.h"

namespace orthrus::train {

/// `orthrus generate` does the work as a child process, `round` requests at a time; scratch files
/// begin with `scratch` and are removed.
class EngineAnswers : public Answerer {
 public:
  EngineAnswers(const GenerateOptions& options, const std::string& scratch, int64_t round)
      : options_(options), scratch_(scratch), round_(round) {}

  void answer(std::span<const AnswerRequest> requests, const BatchOptions& batch,
              const OnAnswer& on_answer) override;

 private:
  void answer_round(std::span<const AnswerRequest> requests, const BatchOptions& batch,
                    const OnAnswer& on_answer) const;

  GenerateOptions options_;
  std::string scratch_;
  int64_t round_;
};

}  // namespace orthrus::train
