#include "base/tensor_type.h"

#include <array>

namespace orthrus {
namespace {

// Indexed by TensorType.
constexpr std::array<TensorTypeTraits, 15> kTraits = {{
    {"F32", 1, 4},
    {"F16", 1, 2},
    {"BF16", 1, 2},
    {"I8", 1, 1},
    {"Q4_0", 32, 18},
    {"Q4_1", 32, 20},
    {"Q5_0", 32, 22},
    {"Q5_1", 32, 24},
    {"Q8_0", 32, 34},
    {"Q2_K", 256, 84},
    {"Q3_K", 256, 110},
    {"Q4_K", 256, 144},
    {"Q5_K", 256, 176},
    {"Q6_K", 256, 210},
    {"IQ4_NL", 32, 18},
}};

}  // namespace

const TensorTypeTraits& traits(TensorType type) { return kTraits[static_cast<size_t>(type)]; }

std::optional<TensorType> tensor_type_from_name(std::string_view name) {
  for (size_t i = 0; i < kTraits.size(); ++i) {
    if (kTraits[i].name == name) return static_cast<TensorType>(i);
  }
  return std::nullopt;
}

}  // namespace orthrus
