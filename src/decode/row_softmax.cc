#include "decode/row_softmax.h"

#include <algorithm>
#include <cmath>

namespace orthrus {

RowSoftmax::RowSoftmax(const RowOps& ops, std::span<const float> logits,
                       std::vector<float>& weights)
    : x(logits), top(ops.argmax(logits.data(), static_cast<int64_t>(logits.size()))) {
  if (top < 0) return;
  if (weights.size() < x.size()) weights.resize(x.size());
  const float best = x[static_cast<size_t>(top)];
  ops.exp_sum(x.data(), best, 1.0f, static_cast<int64_t>(x.size()), weights.data());
  for (size_t i = 0; i < x.size(); ++i) sum += static_cast<double>(weights[i]);
  log_sum = static_cast<double>(best) + std::log(sum);
}

TokenLogprobs token_logprobs(const RowSoftmax& row, int32_t token, int64_t most_likely) {
  TokenLogprobs result;
  result.logprob = row.log_probability(token);
  const size_t wanted = std::min(static_cast<size_t>(most_likely), row.x.size());
  if (wanted == 0) return result;
  const auto before = [&](int32_t a, int32_t b) {
    const float xa = row.x[static_cast<size_t>(a)], xb = row.x[static_cast<size_t>(b)];
    return xa != xb ? xa > xb : a < b;
  };
  // A heap whose front is the worst of the best so far.
  std::vector<int32_t> best;
  for (size_t i = 0; i < row.x.size(); ++i) {
    const int32_t id = static_cast<int32_t>(i);
    if (best.size() == wanted) {
      if (!before(id, best.front())) continue;
      std::pop_heap(best.begin(), best.end(), before);
      best.pop_back();
    }
    best.push_back(id);
    std::push_heap(best.begin(), best.end(), before);
  }
  std::sort_heap(best.begin(), best.end(), before);
  for (const int32_t id : best) result.top.emplace_back(id, row.log_probability(id));
  return result;
}

}  // namespace orthrus
