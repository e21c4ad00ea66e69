#pragma once

#include "kernels/matmul.h"
#include "kernels/matmul_kernels.h"

namespace orthrus {

/// The quantised form of activations, for matmul().
struct ActivationAccess {
  static bool quantized(const Activations& x) { return x.quantized_; }
  static int64_t stride(const Activations& x) { return x.stride_; }
  static const ActivationGroup* groups(const Activations& x) {
    return x.groups_.as<ActivationGroup>();
  }
};

const MatmulKernels& matmul_kernels(Isa isa);

}  // namespace orthrus
