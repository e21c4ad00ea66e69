#pragma once

#include "kernels/matmul.h"
#include "kernels/matmul_kernels.h"

namespace orthrus {

/// The quantised form of activations, for matmul().
struct ActivationAccess {
  static bool quantized(const Activations& x) { return x.quantized_; }
  static int64_t stride(const Activations& x) { return x.stride_; }
  static int64_t code_stride(const Activations& x) { return x.code_stride_; }
  static int64_t group_stride(const Activations& x) { return x.group_stride_; }
  static const int8_t* codes(const Activations& x, int64_t row) {
    return x.codes_.as<int8_t>() + row * x.code_stride_;
  }
  static const ActivationGroup* groups(const Activations& x, int64_t row) {
    return x.groups_.as<ActivationGroup>() + row * x.group_stride_;
  }
};

const MatmulKernels& matmul_kernels(Isa isa);

}  // namespace orthrus
