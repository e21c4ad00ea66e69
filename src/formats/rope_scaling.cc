#include "formats/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace orthrus {
namespace {

constexpr double kMaxAttentionFactor = 1000;
constexpr double kMaxContext = 1 << 30;

/// The pairs between which YaRN's ramp rises.
struct Ramp {
  double low, high;
};

Ramp yarn_ramp(const YarnScaling& scaling, double theta, int64_t head_dim) {
  // The pair, as a real number, that turns so often over the original context.
  const auto pair = [&](double turns) {
    const double wavelength = static_cast<double>(scaling.original_context) / turns;
    return static_cast<double>(head_dim) * std::log(wavelength / (2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair(scaling.beta_fast), high = pair(scaling.beta_slow);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  // Up to head_dim - 1, not head_dim / 2 - 1: so it is in transformers and in ggml.
  return {std::max(low, 0.0), std::min(high, static_cast<double>(head_dim - 1))};
}

}  // namespace

std::vector<float> llama3_divisors(const Llama3Scaling& scaling, double theta, int64_t head_dim) {
  std::vector<float> divisors;
  for (int64_t pair = 0; pair < head_dim / 2; ++pair) {
    const double exponent = 2.0 * static_cast<double>(pair) / static_cast<double>(head_dim);
    const double wavelength = 2 * std::numbers::pi * std::pow(theta, exponent);
    const double turns = scaling.original_context / wavelength;  // over the original context
    double divisor = 1;
    if (turns < scaling.low_freq_factor) {
      divisor = scaling.factor;
    } else if (turns <= scaling.high_freq_factor) {
      const double s =
          (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
      divisor = 1 / ((1 - s) / scaling.factor + s);
    }
    divisors.push_back(static_cast<float>(divisor));
  }
  return divisors;
}

std::vector<float> yarn_divisors(const YarnScaling& scaling, double theta, int64_t head_dim) {
  const Ramp ramp = yarn_ramp(scaling, theta, head_dim);
  const double width = ramp.high > ramp.low ? ramp.high - ramp.low : 0.001;
  std::vector<float> divisors;
  for (int64_t pair = 0; pair < head_dim / 2; ++pair) {
    const double r = std::clamp((static_cast<double>(pair) - ramp.low) / width, 0.0, 1.0);
    divisors.push_back(static_cast<float>(1 / (r / scaling.factor + 1 - r)));
  }
  return divisors;
}

double yarn_attention_factor(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

void apply_yarn(const YarnScaling& scaling, double attention_factor, ModelConfig& config,
                const std::string& where) {
  const auto check = [&](const char* name, double value, double low, double high) {
    if (value >= low && value <= high) return;
    fail("{}: yarn: {} is {}, expected {} to {}", where, name, value, low, high);
  };
  check("the factor", scaling.factor, 1, kMaxRopeFactor);
  const auto original = static_cast<double>(scaling.original_context);
  check("the original context", original, 1, kMaxContext);
  check("beta_slow", scaling.beta_slow, 1e-3, kMaxRopeFactor);
  check("beta_fast", scaling.beta_fast, scaling.beta_slow, kMaxRopeFactor);
  check("the attention factor", attention_factor, 1e-3, kMaxAttentionFactor);
  const double context = scaling.factor * original;
  check("factor times original context", context, 1, kMaxContext);
  const Ramp ramp = yarn_ramp(scaling, config.rope.theta, config.head_dim);
  if (!(ramp.low <= ramp.high)) {
    fail(
        "{}: yarn: {} original tokens, rope_theta {}, beta_fast {} and beta_slow {} leave no pair "
        "between them",
        where, scaling.original_context, config.rope.theta, scaling.beta_fast, scaling.beta_slow);
  }
  const std::vector<float> divisors = yarn_divisors(scaling, config.rope.theta, config.head_dim);
  if (config.rope.divisors.empty()) config.rope.divisors.assign(divisors.size(), 1.0f);
  for (size_t i = 0; i < divisors.size(); ++i) config.rope.divisors[i] *= divisors[i];
  config.rope.attention_factor = attention_factor;
  config.rope.yarn = scaling;
  config.max_position_embeddings =
      std::max(config.max_position_embeddings, static_cast<int64_t>(context));
}

}  // namespace orthrus
