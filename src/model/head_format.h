#pragma once

#include "orthrus/options.h"

namespace orthrus {

/// The runtime format of lm_head and embedding: they stay at 8 bits where all else goes to 4, as
/// they decide most of the quality.
inline WeightFormat head_format(WeightFormat format) {
  return format == WeightFormat::kQ4 ? WeightFormat::kQ8 : format;
}

}  // namespace orthrus
