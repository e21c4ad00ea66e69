#pragma once

#include "kernels/matmul.h"
#include "kernels/matmul_kernels.h"

namespace orthrus {

/// The quantised form of activations, for matmul().
struct ActivationAccess {
  static const ActivationForms& forms(const Activations& x) { return x.forms_; }
  static int64_t stride(const Activations& x) { return x.stride_; }
  static const ActivationGroup* groups(const Activations& x) {
    return x.groups_.as<ActivationGroup>();
  }
  static const uint16_t* bf16(const Activations& x) { return x.bf16_.as<uint16_t>(); }
};

/// Halves between rows of `cols` inputs in bf16: whole vectors, and a cache line more, since
/// strides that are powers of two would put all rows into the same sets of the cache.
constexpr int64_t bf16_stride(int64_t cols) { return (cols + 31) / 32 * 32 + 32; }

const MatmulKernels& matmul_kernels(Isa isa);

}  // namespace orthrus
