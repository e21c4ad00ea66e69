#include "trainer/plot/run_history.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace orthrus::train {

RunHistory read_history(const std::string& folder, double tokens_before) {
  const std::string path = folder + "/log.jsonl";
  std::ifstream file(path);
  if (!file) fail("{}: cannot be read", path);
  RunHistory history;
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) continue;
    try {
      const std::string event = json.value("event", "");
      if (event == "step") {
        history.steps.push_back({tokens_before + json.at("tokens").get<double>(), json.at("loss"),
                                 json.at("tokens_per_cycle")});
      } else if (event == "evaluation") {
        history.evaluations.push_back(
            {tokens_before + json.at("tokens").get<double>(), json.at("tokens_per_cycle"),
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

double Forecast::at(double tokens) const { return level + slope * std::log(tokens); }

double Forecast::margin(double tokens) const {
  const double distance = std::log(tokens) - mean_log;
  return 2 * residual * std::sqrt(1 + 1 / count + distance * distance / spread);
}

std::optional<Forecast> fit_forecast(const RunHistory& history) {
  std::vector<double> x, y;
  for (const RunHistory::Evaluation& e : history.evaluations) {
    if (e.tokens <= 0) continue;
    x.push_back(std::log(e.tokens));
    y.push_back(e.tokens_per_cycle);
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
  if (xx <= 0) return std::nullopt;
  Forecast f{mean_y - xy / xx * mean_x, xy / xx, mean_x, xx, 0, n};
  for (size_t i = 0; i < x.size(); ++i) rest += std::pow(y[i] - f.level - f.slope * x[i], 2);
  f.residual = std::sqrt(rest / (n - 2));
  return f;
}

}  // namespace orthrus::train
