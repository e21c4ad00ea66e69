#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/model_config.h"

namespace orthrus {

/// Llama 3's scaling of rotary frequencies (`rope_scaling` of type "llama3").
struct Llama3Scaling {
  double factor = 1;
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  double original_context = 8192;  ///< tokens
};

/// Divisors of the rotary frequencies, one a pair [head_dim / 2]: 1 for wavelengths below
/// original_context / high_freq_factor, `factor` above original_context / low_freq_factor, and in
/// between 1 / ((1 - s) / factor + s) with s falling linearly in 1 / wavelength.
std::vector<float> llama3_divisors(const Llama3Scaling& scaling, double theta, int64_t head_dim);

inline constexpr double kMaxRopeFactor = 1e6;

/// Divisors as `transformers` computes them: 1 for pairs that turn at least beta_fast times over
/// the original context, `factor` for those up to beta_slow, and in between 1 / (r / factor + 1 -
/// r) with r rising linearly in the pair's number.
std::vector<float> yarn_divisors(const YarnScaling& scaling, double theta, int64_t head_dim);

/// YaRN's factor of cosines and sines: 0.1 * mscale * ln(factor) + 1.
double yarn_attention_factor(double factor, double mscale = 1);

/// Scales the rotation of `config` by YaRN, on top of divisors that it has, and lengthens its
/// context to factor * original_context where that is more. Error(kInput) names `where` for
/// parameters out of range.
void apply_yarn(const YarnScaling& scaling, double attention_factor, ModelConfig& config,
                const std::string& where);

}  // namespace orthrus
