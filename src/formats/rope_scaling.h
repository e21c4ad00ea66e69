#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace orthrus
