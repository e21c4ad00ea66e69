#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "model/random_files.h"

namespace orthrus::testing {

/// The forward pass in double precision, row by row, straight from the formulas: RMS norm, rotary
/// embedding over the two halves of a head, softmax attention with shared key-value heads, SwiGLU;
/// the diffusion view as in section 3 of the Orthrus paper.
class PlainForward {
 public:
  explicit PlainForward(const RandomFiles& files) : files_(files), c_(files.config) {}

  /// Logits [tokens.size() + block, vocab]: the AR view's of `tokens`, then the diffusion view's
  /// of a block that is anchored at tokens[anchor] and sees the tokens before it.
  std::vector<double> logits(std::span<const int32_t> tokens, int64_t anchor, int64_t block) {
    rows_.clear();
    for (size_t i = 0; i < tokens.size(); ++i) {
      rows_.push_back({static_cast<int64_t>(i), false, embedding(tokens[i]), {}, {}, {}});
    }
    for (int64_t i = 0; i < block; ++i) {
      rows_.push_back({anchor + i,
                       true,
                       i == 0 ? embedding(tokens[static_cast<size_t>(anchor)]) : mask(),
                       {},
                       {},
                       {}});
    }
    for (int64_t layer = 0; layer < c_.num_layers; ++layer) {
      attend(layer, anchor);
      for (Row& row : rows_) feed_forward(layer, row);
    }
    std::vector<double> all;
    const auto head = std::string(c_.tie_word_embeddings ? kEmbeddingName : kLmHeadName);
    for (const Row& row : rows_) {
      const Vector out = multiply(head, norm(row.x, std::string(kFinalNormName)));
      all.insert(all.end(), out.begin(), out.end());
    }
    return all;
  }

 private:
  using Vector = std::vector<double>;
  struct Row {
    int64_t position;
    bool diffusion;
    Vector x;        // residual stream [hidden]
    Vector q, k, v;  // [heads * head_dim], [kv_heads * head_dim]
  };

  const std::vector<float>& tensor(const std::string& name) const {
    return files_.tensors.at(name);
  }

  Vector embedding(int64_t token) const {
    const auto row = tensor(std::string(kEmbeddingName)).begin() + token * c_.hidden_size;
    return {row, row + c_.hidden_size};
  }

  Vector mask() const {
    if (!files_.has_mask_embedding()) return embedding(c_.mask_token_id);
    const std::vector<float>& mask = tensor(std::string(kMaskEmbeddingName));
    return {mask.begin(), mask.end()};
  }

  Vector multiply(const std::string& name, const Vector& x) const {
    const std::vector<float>& w = tensor(name);
    Vector out(w.size() / x.size());
    for (size_t o = 0; o < out.size(); ++o) {
      for (size_t i = 0; i < x.size(); ++i) out[o] += double{w[o * x.size() + i]} * x[i];
    }
    return out;
  }

  /// The views have their own weights and share the biases.
  Vector project(int64_t layer, const std::string& part, bool diffusion, const Vector& x) const {
    Vector out = multiply(layer_tensor(layer, part + (diffusion ? "_diff.weight" : ".weight")), x);
    const auto bias = files_.tensors.find(layer_tensor(layer, part + ".bias"));
    if (bias == files_.tensors.end()) return out;
    for (size_t i = 0; i < out.size(); ++i) out[i] += double{bias->second[i]};
    return out;
  }

  Vector norm(const Vector& x, const std::string& name) const {
    double squares = 0;
    for (const double v : x) squares += v * v;
    const double root = std::sqrt(squares / static_cast<double>(x.size()) + c_.rms_norm_eps);
    Vector out(x.size());
    for (size_t i = 0; i < x.size(); ++i) out[i] = x[i] / root * double{tensor(name)[i]};
    return out;
  }

  /// Norm (Qwen3) and rotation of each head: pair i is elements i and i + head_dim / 2.
  void turn_heads(int64_t layer, const std::string& part, const Row& row, Vector& heads) const {
    const auto dim = static_cast<size_t>(c_.head_dim), half = dim / 2;
    for (size_t at = 0; at < heads.size(); at += dim) {
      Vector head(heads.begin() + static_cast<long>(at),
                  heads.begin() + static_cast<long>(at + dim));
      if (c_.qk_norm) {
        const std::string name = "self_attn." + part + (row.diffusion ? "_diff.weight" : ".weight");
        head = norm(head, layer_tensor(layer, name));
      }
      for (size_t i = 0; i < half; ++i) {
        const double exponent = -2 * static_cast<double>(i) / static_cast<double>(dim);
        double angle = static_cast<double>(row.position) * std::pow(c_.rope.theta, exponent);
        if (!c_.rope.divisors.empty()) angle /= double{c_.rope.divisors[i]};
        const double cos = c_.rope.attention_factor * std::cos(angle);
        const double sin = c_.rope.attention_factor * std::sin(angle);
        heads[at + i] = head[i] * cos - head[i + half] * sin;
        heads[at + i + half] = head[i + half] * cos + head[i] * sin;
      }
    }
  }

  void attend(int64_t layer, int64_t anchor) {
    for (Row& row : rows_) {
      const Vector x = norm(row.x, layer_tensor(layer, "input_layernorm.weight"));
      row.q = project(layer, "self_attn.q_proj", row.diffusion, x);
      row.k = project(layer, "self_attn.k_proj", row.diffusion, x);
      row.v = project(layer, "self_attn.v_proj", row.diffusion, x);
      turn_heads(layer, "q_norm", row, row.q);
      turn_heads(layer, "k_norm", row, row.k);
    }
    for (Row& row : rows_) {
      std::vector<const Row*> seen;
      for (const Row& other : rows_) {
        const bool sees = row.diffusion ? other.diffusion || other.position < anchor
                                        : !other.diffusion && other.position <= row.position;
        if (sees) seen.push_back(&other);
      }
      add(row.x, project(layer, "self_attn.o_proj", row.diffusion, mixed(row, seen)));
    }
  }

  Vector mixed(const Row& row, const std::vector<const Row*>& seen) const {
    const auto dim = static_cast<size_t>(c_.head_dim);
    const auto group = static_cast<size_t>(c_.num_heads / c_.num_kv_heads);
    Vector out(row.q.size());
    for (size_t head = 0; head < static_cast<size_t>(c_.num_heads); ++head) {
      const size_t q = head * dim, kv = head / group * dim;
      Vector weights;
      double total = 0;
      for (const Row* other : seen) {
        double score = 0;
        for (size_t d = 0; d < dim; ++d) score += row.q[q + d] * other->k[kv + d];
        total += weights.emplace_back(std::exp(score / std::sqrt(static_cast<double>(dim))));
      }
      for (size_t i = 0; i < seen.size(); ++i) {
        for (size_t d = 0; d < dim; ++d) out[q + d] += weights[i] / total * seen[i]->v[kv + d];
      }
    }
    return out;
  }

  void feed_forward(int64_t layer, Row& row) const {
    const Vector x = norm(row.x, layer_tensor(layer, "post_attention_layernorm.weight"));
    Vector gate = project(layer, "mlp.gate_proj", false, x);
    const Vector up = project(layer, "mlp.up_proj", false, x);
    for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i] / (1 + std::exp(-gate[i]));
    add(row.x, project(layer, "mlp.down_proj", false, gate));
  }

  static void add(Vector& x, const Vector& y) {
    for (size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  }

  const RandomFiles& files_;
  const ModelConfig& c_;
  std::vector<Row> rows_;
};

}  // namespace orthrus::testing
