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
};

/// folder/log.jsonl. Lines that are no such events are passed over; Error(kInput) where none is.
/// tokens_before: what the run's start had been trained on, added to all tokens.
RunHistory read_history(const std::string& folder, double tokens_before = 0);

/// Least squares of tokens per cycle over the logarithm of the tokens trained on.
struct Forecast {
  double level, slope;      ///< tokens per cycle = level + slope * ln(tokens)
  double mean_log, spread;  ///< of ln(tokens): mean, sum of squared deviations
  double residual;          ///< standard deviation of the residuals
  double count;

  double at(double tokens) const;
  /// Twice the standard error of a new evaluation there, by the usual formula for regression lines.
  double margin(double tokens) const;
};

/// From the evaluations after the start; needs four of them.
std::optional<Forecast> fit_forecast(const RunHistory& history);

}  // namespace orthrus::train
