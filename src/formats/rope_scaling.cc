#include "formats/rope_scaling.h"

#include <cmath>
#include <numbers>

namespace orthrus {

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

}  // namespace orthrus
