#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "trainer/model/answer_request.h"

namespace orthrus::train {

/// Who runs the frozen model: `orthrus generate` as a child process, or this program in libtorch.
enum class Backend : uint8_t { kEngine, kTorch };

/// How the frozen model answers.
struct GenerateOptions {
  Backend backend = Backend::kEngine;
  std::string device = "cpu";  ///< of libtorch: cpu, cuda or cuda:N
  std::string program;         ///< path of orthrus
  std::string model;
  /// A runtime format of orthrus; of libtorch f32 or bf16. auto: orthrus chooses; bf16 on CUDA, f32
  /// on the CPU.
  std::string weights = "auto";
  BatchOptions batch;
  uint64_t seed = 0;
};

/// The frozen model as a writer.
class Answerer {
 public:
  virtual ~Answerer() = default;
  /// Answers all requests, in any order. Error(kInput) where that fails.
  virtual void answer(std::span<const AnswerRequest> requests, const BatchOptions& batch,
                      const OnAnswer& on_answer) = 0;
};

/// Loads nothing before the first request. round: requests that `orthrus generate` gets at a time;
/// its scratch files begin with `scratch`. Error(kUsage) for a device that is not there or weights
/// that libtorch does not know.
std::unique_ptr<Answerer> make_answerer(const GenerateOptions& options, const std::string& scratch,
                                        int64_t round);

/// `orthrus` beside this program, else the one in PATH.
std::string default_orthrus_program();

}  // namespace orthrus::train
