#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "engine/engine.h"

namespace orthrus {

/// What became of a request, as `orthrus_requests_total{outcome}` counts.
enum class Outcome : uint8_t { kStop, kLength, kCancelled, kError, kRejected };

/// The numbers that GET /metrics shows, in Prometheus's text format. Any thread.
class Metrics {
 public:
  struct Model {
    std::string name;
    std::string weights;  ///< runtime format
    bool dual = false;    ///< has a diffusion view
    int64_t block_size = 0;
  };
  Metrics(const std::string& version);
  ~Metrics();

  /// Once, when the model is loaded.
  void set_model(const Model& model);

  /// The first token of an answer, `seconds` after its request came.
  void first_token(double seconds);
  /// A later step that gave `tokens` tokens, `seconds` after the one before: so many seconds a
  /// token.
  void next_tokens(double seconds, int64_t tokens);
  /// What of an answer's work has been counted.
  struct Counted {
    int64_t tokens = 0, cycles = 0, passes = 0, drafted = 0, accepted = 0;
    size_t judged_cycles = 0;  ///< of GenerateResult::drafted_per_cycle
  };
  /// After each step of an answer, and at its end: counts what it has done since the last call, so
  /// that rates are those of the moment, and answers that fail count too.
  void worked(const GenerateResult& so_far, Counted& counted);
  /// An answer has ended; after worked().
  void answered(const std::string& endpoint, const GenerateResult& result, double seconds);
  /// A request got no answer: an error, or no place.
  void failed(const std::string& endpoint, Outcome outcome);

  /// All of it as text. `engine` is null while the model is being loaded.
  std::string text(const EngineStats* engine, int64_t http_connections);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace orthrus
