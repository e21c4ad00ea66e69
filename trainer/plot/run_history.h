#pragma once

#include <optional>
#include <string>
#include <vector>

namespace orthrus::train {

/// What a run's log holds, in its order.
struct RunHistory {
  struct Step {
    double tokens, loss, tokens_per_cycle;
  };
  struct Evaluation {
    double tokens, tokens_per_cycle, mean;
    std::vector<double> accuracy;  // a block position
  };
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
  double documents = 0, answer_tokens = 0;  ///< of the data; 0: not known
  double block_size = 0;                    ///< diffusion tokens of an anchor; 0: not known
  double tokens_before = 0;  ///< that the run's start had been trained on; part of all tokens here
};

/// folder/log.jsonl. Lines that are no such events are passed over; Error(kInput) where none is.
/// tokens_before: where the log does not say it, or says it wrong.
RunHistory read_history(const std::string& folder, std::optional<double> tokens_before = {});

/// Least squares of tokens per cycle over the logarithm of the tokens trained on, at most a whole
/// block.
struct Forecast {
  double level, slope;      ///< tokens per cycle = level + slope * ln(tokens)
  double mean_log, spread;  ///< of ln(tokens): mean, sum of squared deviations
  double residual;          ///< standard deviation of the residuals
  double count;
  double most;  ///< tokens per cycle of whole blocks

  double at(double tokens) const;
  /// Half of the 95 % interval of a new evaluation there (Student's t, the usual formula for
  /// regression lines). Evaluations of a run share their documents: others vary more.
  double margin(double tokens) const;
};

/// From the evaluations after the start, of those close together the last; needs four of them.
std::optional<Forecast> fit_forecast(const RunHistory& history);

}  // namespace orthrus::train
