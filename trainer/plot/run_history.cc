#include "trainer/plot/run_history.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace orthrus::train {

RunHistory read_history(const std::string& folder, std::optional<double> tokens_before) {
  const std::string path = folder + "/log.jsonl";
  std::ifstream file(path);
  if (!file) fail("{}: cannot be read", path);
  RunHistory history;
  history.tokens_before = tokens_before.value_or(0);
  double& before = history.tokens_before;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    try {
      const std::string event = json.value("event", "");
      if (event == "start") {
        const auto& settings = json.at("settings");
        if (!tokens_before) before = settings.value("tokens_before", 0.0);
        history.documents = settings.value("documents", 0.0);
        history.answer_tokens = settings.value("answer_tokens", 0.0);
        history.block_size = settings.value("block_size", 0.0);
      } else if (event == "step") {
        history.steps.push_back({before + json.at("tokens").get<double>(), json.at("loss"),
                                 json.at("tokens_per_cycle")});
      } else if (event == "evaluation") {
        history.evaluations.push_back(
            {before + json.at("tokens").get<double>(), json.at("tokens_per_cycle"),
             json.at("tokens_per_cycle_mean"), json.at("accuracy").get<std::vector<double>>()});
      }
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  if (history.steps.empty() && history.evaluations.empty()) {
    fail("{}: holds no step and no evaluation", path);
  }
  return history;
}

namespace {

/// The 97.5 % quantile of Student's t: the expansion in 1/freedom around the normal one
/// (Abramowitz and Stegun, 26.7.5), 1 % off at 2 degrees of freedom, less from there on.
double student_t(double freedom) {
  constexpr double z = 1.959964;
  const double z2 = z * z, f = freedom;
  const double g1 = z * (z2 + 1) / 4;
  const double g2 = z * ((5 * z2 + 16) * z2 + 3) / 96;
  const double g3 = z * (((3 * z2 + 19) * z2 + 17) * z2 - 15) / 384;
  const double g4 = z * ((((79 * z2 + 776) * z2 + 1482) * z2 - 1920) * z2 - 945) / 92160;
  return z + (g1 + (g2 + (g3 + g4 / f) / f) / f) / f;
}

/// The points of the line: tokens, tokens per cycle.
std::vector<std::pair<double, double>> curve(const RunHistory& history) {
  constexpr double kClose = 1.02;  // as the last evaluation, which no interval was waited for
  std::vector<std::pair<double, double>> points;
  for (const RunHistory::Evaluation& e : history.evaluations) {
    if (e.tokens <= history.tokens_before) continue;
    if (!points.empty() && e.tokens < kClose * points.back().first) points.pop_back();
    points.emplace_back(e.tokens, e.tokens_per_cycle);
  }
  return points;
}

}  // namespace

double Forecast::at(double tokens) const {
  return std::min(most, level + slope * std::log(tokens));
}

double Forecast::margin(double tokens) const {
  const double distance = std::log(tokens) - mean_log;
  return student_t(count - 2) * residual * std::sqrt(1 + 1 / count + distance * distance / spread);
}

std::optional<Forecast> fit_forecast(const RunHistory& history) {
  std::vector<double> x, y;
  for (const auto& [tokens, tokens_per_cycle] : curve(history)) {
    x.push_back(std::log(tokens));
    y.push_back(tokens_per_cycle);
  }
  constexpr size_t kLeast = 4;
  if (x.size() < kLeast) return std::nullopt;
  const auto n = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0, rest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    mean_x += x[i] / n;
    mean_y += y[i] / n;
  }
  for (size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  if (xx < 1e-6) return std::nullopt;  // as good as one place: the slope would be rounding
  const double most = 1 + static_cast<double>(history.evaluations.back().accuracy.size());
  Forecast f{mean_y - xy / xx * mean_x, xy / xx, mean_x, xx, 0, n, most};
  for (size_t i = 0; i < x.size(); ++i) rest += std::pow(y[i] - f.level - f.slope * x[i], 2);
  f.residual = std::sqrt(rest / (n - 2));
  return f;
}

}  // namespace orthrus::train
