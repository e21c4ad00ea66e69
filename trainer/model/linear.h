#pragma once

#include <ATen/ATen.h>

#include <memory>

namespace orthrus::train {

/// What matrices are multiplied in; sums, and all that is no matrix product, stay float32.
enum class Precision : uint8_t { kFloat32, kBfloat16 };

/// Whether products in bfloat16 are faster than in float32: on CUDA devices and on CPUs with
/// AVX512_BF16.
bool fast_bfloat16(const at::Device& device);

/// A weight [out, in] and products with it, in float32 or with both factors rounded to bfloat16.
/// The rounded forms are made when first needed, and again once the weight was changed in place.
class Linear {
 public:
  explicit Linear(const at::Tensor& weight);
  ~Linear();
  Linear(Linear&&) noexcept;
  Linear& operator=(Linear&&) noexcept;

  /// x [rows, in] -> x W^T [rows, out]. Gradients go to x and, where it requires one, to the
  /// weight. This must outlive the graph.
  at::Tensor operator()(const at::Tensor& x, Precision precision) const;
  /// The same without gradients, and what the backward pass needs: dy [rows, out] -> dy W
  /// [rows, in].
  at::Tensor forward(const at::Tensor& x, Precision precision) const;
  at::Tensor input_gradient(const at::Tensor& dy, Precision precision) const;

  const at::Tensor& weight() const { return weight_; }

 private:
  struct Rounded;
  Rounded& rounded() const;

  at::Tensor weight_;
  mutable std::unique_ptr<Rounded> rounded_;
};

}  // namespace orthrus::train
