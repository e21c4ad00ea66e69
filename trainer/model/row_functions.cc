#include "trainer/model/row_functions.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "kernels/row_ops.h"
#include "trainer/model/row_gradients.h"

namespace orthrus::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

constexpr int64_t kGrain = 16;  // rows a thread takes at least

const RowOps& ops() {
  static const RowOps& table = row_ops(choose_isa());
  return table;
}

const RowGradients& gradients() {
  static const RowGradients& table = row_gradients(choose_isa());
  return table;
}

/// Whether the kernels of the engine can work on it.
bool by_rows(const at::Tensor& x) { return x.device().is_cpu() && x.scalar_type() == at::kFloat; }

template <typename Fn>
void for_rows(int64_t rows, Fn fn) {
  at::parallel_for(0, rows, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) fn(r);
  });
}

at::Tensor inverse_rms(const at::Tensor& x, double eps) {
  return at::rsqrt((x * x).mean(-1, /*keepdim=*/true) + eps);
}

class RmsNorm : public Function<RmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given,
                            const at::Tensor& weight, double eps) {
    const at::NoGradGuard no_grad;
    const at::Tensor x = given.contiguous();
    context->save_for_backward({x, weight});
    context->saved_data["eps"] = eps;
    if (!by_rows(x)) return x * inverse_rms(x, eps) * weight;
    at::Tensor out = at::empty_like(x);
    const int64_t n = x.size(-1);
    const float* const from = x.data_ptr<float>();
    const float* const w = weight.data_ptr<float>();
    float* const to = out.data_ptr<float>();
    for_rows(x.numel() / n, [&](int64_t r) {
      ops().rms_norm(from + r * n, w, static_cast<float>(eps), n, to + r * n);
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const double eps = context->saved_data["eps"].toDouble();
    const at::Tensor dy = grads[0].contiguous();
    const int64_t n = x.size(-1);
    at::Tensor dx, dweight;
    if (by_rows(x)) {
      dx = at::empty_like(x);
      const float *const xs = x.data_ptr<float>(), *const w = weight.data_ptr<float>(),
                         *const dys = dy.data_ptr<float>();
      float* const to = dx.data_ptr<float>();
      for_rows(x.numel() / n, [&](int64_t r) {
        gradients().rms_norm(xs + r * n, w, dys + r * n, static_cast<float>(eps), n, to + r * n);
      });
    } else {
      const at::Tensor r = inverse_rms(x, eps), g = dy * weight;
      dx = r * g - x * r.pow(3) * (g * x).mean(-1, true);
    }
    if (weight.requires_grad()) {
      dweight = (dy * x * inverse_rms(x, eps)).reshape({-1, n}).sum(0);
    }
    return {dx, dweight, at::Tensor()};
  }
};

at::Tensor rotated(const at::Tensor& given, const at::Tensor& cos, const at::Tensor& sin) {
  if (!by_rows(given)) {
    const int64_t half = given.size(2) / 2;
    const at::Tensor a = given.narrow(2, 0, half), b = given.narrow(2, half, half);
    return at::cat({a * cos - b * sin, b * cos + a * sin}, 2);
  }
  at::Tensor out = given.clone(at::MemoryFormat::Contiguous);
  const int64_t heads = out.size(1), size = out.size(2);
  float* const x = out.data_ptr<float>();
  const float *const c = cos.data_ptr<float>(), *const s = sin.data_ptr<float>();
  for_rows(out.size(0), [&](int64_t r) {
    for (int64_t h = 0; h < heads; ++h) {
      ops().rotate(x + (r * heads + h) * size, c + r * size / 2, s + r * size / 2, size);
    }
  });
  return out;
}

class Rotate : public Function<Rotate> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cos,
                            const at::Tensor& sin) {
    const at::NoGradGuard no_grad;
    context->save_for_backward({cos, sin});
    return rotated(x, cos, sin);
  }
  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const auto saved = context->get_saved_variables();
    return {rotated(grads[0], saved[0], -saved[1]), at::Tensor(), at::Tensor()};
  }
};

class SiluMul : public Function<SiluMul> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given) {
    const at::NoGradGuard no_grad;
    const at::Tensor gate_up = given.contiguous();
    context->save_for_backward({gate_up});
    const int64_t n = gate_up.size(1) / 2;
    if (!by_rows(gate_up)) {
      return at::silu(gate_up.narrow(1, 0, n)) * gate_up.narrow(1, n, n);
    }
    at::Tensor out = at::empty({gate_up.size(0), n}, gate_up.options());
    const float* const from = gate_up.data_ptr<float>();
    float* const to = out.data_ptr<float>();
    for_rows(gate_up.size(0), [&](int64_t r) {
      ops().silu_mul(from + 2 * r * n, from + (2 * r + 1) * n, n, to + r * n);
    });
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grads) {
    const at::Tensor gate_up = context->get_saved_variables()[0];
    const at::Tensor dy = grads[0].contiguous();
    const int64_t n = dy.size(1);
    if (!by_rows(gate_up)) {
      const at::Tensor gate = gate_up.narrow(1, 0, n), sigmoid = at::sigmoid(gate);
      return {at::cat({dy * gate_up.narrow(1, n, n) * sigmoid * (1 + gate * (1 - sigmoid)),
                       dy * gate * sigmoid},
                      1)};
    }
    at::Tensor out = at::empty_like(gate_up);
    const float *const from = gate_up.data_ptr<float>(), *const dys = dy.data_ptr<float>();
    float* const to = out.data_ptr<float>();
    for_rows(dy.size(0), [&](int64_t r) {
      gradients().silu_mul(from + 2 * r * n, from + (2 * r + 1) * n, dys + r * n, n, to + 2 * r * n,
                           to + (2 * r + 1) * n);
    });
    return {out};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return RmsNorm::apply(x, weight, eps);
}

at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return Rotate::apply(x, cos, sin);
}

at::Tensor silu_mul(const at::Tensor& gate_up) { return SiluMul::apply(gate_up); }

}  // namespace orthrus::train
