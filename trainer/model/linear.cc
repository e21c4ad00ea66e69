#include "trainer/model/linear.h"

#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "trainer/model/bf16_gemm.h"

namespace orthrus::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

bool by_panels(const at::Tensor& x) { return x.device().is_cpu() && bf16_gemm_supported(); }

at::Tensor multiply(const at::Tensor& given, const Bf16Panels& panels) {
  const at::Tensor x = given.contiguous();
  at::Tensor out = at::empty({x.size(0), panels.cols()}, x.options());
  bf16_gemm(Bf16Rows(x.data_ptr<float>(), x.size(0), x.size(1)), panels, out.data_ptr<float>());
  return out;
}

at::Tensor bf16(const at::Tensor& x) { return x.to(at::kBFloat16); }

/// dy^T x [out, in].
at::Tensor weight_gradient(const at::Tensor& dy, const at::Tensor& given, Precision precision) {
  if (precision == Precision::kFloat32) return at::mm(dy.t(), given);
  if (!by_panels(dy)) return at::mm(bf16(dy).t(), bf16(given)).to(at::kFloat);
  const at::Tensor x = given.contiguous();
  return multiply(dy.t(), Bf16Panels(x.data_ptr<float>(), x.size(0), x.size(1), x.size(1), 1));
}

}  // namespace

bool fast_bfloat16(const at::Device& device) {
  return device.is_cuda() || (device.is_cpu() && bf16_gemm_supported());
}

struct Linear::Rounded {
  int64_t version = -1;  // of the weight that the forms were made from
  std::optional<Bf16Panels> forward, backward;
  at::Tensor tensor;
};

Linear::Linear(const at::Tensor& weight) : weight_(weight) {}
Linear::~Linear() = default;
Linear::Linear(Linear&&) noexcept = default;
Linear& Linear::operator=(Linear&&) noexcept = default;

Linear::Rounded& Linear::rounded() const {
  const auto version = static_cast<int64_t>(weight_._version());
  if (!rounded_ || rounded_->version != version) {
    rounded_ = std::make_unique<Rounded>();
    rounded_->version = version;
  }
  return *rounded_;
}

at::Tensor Linear::forward(const at::Tensor& x, Precision precision) const {
  const at::NoGradGuard no_grad;
  if (precision == Precision::kFloat32) return at::mm(x, weight_.t());
  Rounded& r = rounded();
  const int64_t outputs = weight_.size(0), inputs = weight_.size(1);
  if (by_panels(x)) {
    if (!r.forward) r.forward.emplace(weight_.data_ptr<float>(), inputs, outputs, 1, inputs);
    return multiply(x, *r.forward);
  }
  if (!r.tensor.defined()) r.tensor = bf16(weight_);
  return at::mm(bf16(x), r.tensor.t()).to(at::kFloat);
}

at::Tensor Linear::input_gradient(const at::Tensor& dy, Precision precision) const {
  const at::NoGradGuard no_grad;
  if (precision == Precision::kFloat32) return at::mm(dy, weight_);
  Rounded& r = rounded();
  const int64_t outputs = weight_.size(0), inputs = weight_.size(1);
  if (by_panels(dy)) {
    if (!r.backward) r.backward.emplace(weight_.data_ptr<float>(), outputs, inputs, inputs, 1);
    return multiply(dy, *r.backward);
  }
  if (!r.tensor.defined()) r.tensor = bf16(weight_);
  return at::mm(bf16(dy), r.tensor).to(at::kFloat);
}

namespace {

class Product : public Function<Product> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            const Linear* linear, Precision precision) {
    // The input is needed for the weight's gradient alone.
    context->saved_data["trained"] = weight.requires_grad();
    if (weight.requires_grad()) context->save_for_backward({x});
    context->saved_data["linear"] = reinterpret_cast<int64_t>(linear);
    context->saved_data["precision"] = static_cast<int64_t>(precision);
    return linear->forward(x, precision);
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto* linear = reinterpret_cast<const Linear*>(context->saved_data["linear"].toInt());
    const auto precision = static_cast<Precision>(context->saved_data["precision"].toInt());
    const at::Tensor dy = grads[0].contiguous();
    at::Tensor dweight;
    if (context->saved_data["trained"].toBool()) {
      dweight = weight_gradient(dy, context->get_saved_variables()[0], precision);
    }
    return {linear->input_gradient(dy, precision), dweight, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor Linear::operator()(const at::Tensor& x, Precision precision) const {
  return Product::apply(x, weight_, this, precision);
}

}  // namespace orthrus::train
