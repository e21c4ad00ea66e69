#pragma once

#include "kernels/row_ops_impl.h"
#include "trainer/model/row_gradients.h"

namespace orthrus::train {

/// RowGradients over a vector type of the engine.
template <typename V>
struct RowGradientsImpl {
  using Rows = RowOpsImpl<V>;

  static void rms_norm(const float* x, const float* weight, const float* dy, float eps, int64_t n,
                       float* dx) {
    V squares[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    V products[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
    Rows::for_vectors(n, [&](int64_t i, int lanes) {
      const V v = Rows::load(x + i, lanes);
      const V g = Rows::load(dy + i, lanes) * Rows::load(weight + i, lanes);
      V& square = squares[(i / 16) % 4];
      V& product = products[(i / 16) % 4];
      square = mul_add(v, v, square);
      product = mul_add(v, g, product);
    });
    // r = 1 / sqrt(mean(x^2) + eps): dx = r weight dy - x r^3 / n sum(weight dy x).
    const float size = static_cast<float>(n);
    const float r = 1.0f / sqrtf(Rows::sum(squares) / size + eps);
    const V inverse = V::broadcast(r);
    const V along = V::broadcast(-r * r * r / size * Rows::sum(products));
    Rows::for_vectors(n, [&](int64_t i, int lanes) {
      const V g = Rows::load(dy + i, lanes) * Rows::load(weight + i, lanes);
      Rows::store(mul_add(Rows::load(x + i, lanes), along, g * inverse), dx + i, lanes);
    });
  }

  static void silu_mul(const float* gate, const float* up, const float* dy, int64_t n, float* dgate,
                       float* dup) {
    const V one = V::broadcast(1.0f);
    Rows::for_vectors(n, [&](int64_t i, int lanes) {
      const V g = Rows::load(gate + i, lanes), d = Rows::load(dy + i, lanes);
      const V sigmoid = one / (one + vec_exp(V::zero() - g));
      // silu' = sigmoid (1 + g (1 - sigmoid))
      const V slope = sigmoid * mul_add(g, one - sigmoid, one);
      Rows::store(d * Rows::load(up + i, lanes) * slope, dgate + i, lanes);
      Rows::store(d * g * sigmoid, dup + i, lanes);
    });
  }

  static constexpr RowGradients table() { return {rms_norm, silu_mul}; }
};

extern const RowGradients kRowGradientsAvx2;
extern const RowGradients kRowGradientsAvx512;

}  // namespace orthrus::train
