#include "decode/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orthrus {
namespace {

void add(WeightCost& cost, const PackedMatrix& matrix) {
  const double macs = static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols());
  cost.bytes += static_cast<double>(matrix.bytes());
  (matrix.layout().kind == PackedLayout::Kind::kGroups ? cost.int8_macs : cost.f32_macs) += macs;
}

void add(WeightCost& cost, const AttentionWeights& weights) {
  for (const PackedMatrix* matrix :
       {&weights.q_proj, &weights.k_proj, &weights.v_proj, &weights.o_proj}) {
    add(cost, *matrix);
  }
}

}  // namespace

ModelCost ModelCost::of(const Model& model, const KvLayout& layout) {
  ModelCost cost;
  for (const LayerWeights& layer : model.layers) {
    add(cost.ar, layer.ar);
    if (layer.diff) add(cost.diffusion, *layer.diff);
    for (const PackedMatrix* matrix : {&layer.gate_proj, &layer.up_proj, &layer.down_proj}) {
      add(cost.shared, *matrix);
    }
  }
  add(cost.lm_head, model.lm_head);
  cost.kv_bytes_per_token =
      static_cast<double>(layout.block_bytes()) / static_cast<double>(kKvBlockTokens);
  return cost;
}

double CostModel::weight_seconds(const WeightCost& cost, int64_t rows) const {
  if (rows == 0) return 0;
  const double ops = 2 * static_cast<double>(rows);
  const double compute =
      ops * cost.f32_macs / rates_.f32_flops + ops * cost.int8_macs / rates_.int8_ops;
  return std::max(cost.bytes / rates_.bytes_per_second, compute);
}

double CostModel::analytic(const PassShape& shape) const {
  const double kv_seconds = static_cast<double>(shape.context_tokens) * model_.kv_bytes_per_token /
                            rates_.bytes_per_second;
  return weight_seconds(model_.shared, shape.ar_rows + shape.diffusion_rows) +
         weight_seconds(model_.ar, shape.ar_rows) +
         weight_seconds(model_.diffusion, shape.diffusion_rows) +
         weight_seconds(model_.lm_head, shape.logit_rows) + kv_seconds;
}

CostModel::Kind CostModel::kind_of(const PassShape& shape) {
  if (shape.diffusion_rows == 0) return kAr;
  return shape.ar_rows == 0 ? kDiffusion : kMixed;
}

int CostModel::bucket_of(int64_t rows) {
  if (rows <= 8) return static_cast<int>(std::max<int64_t>(rows, 1)) - 1;
  const uint64_t above = static_cast<uint64_t>(std::min<int64_t>(rows, 1024) - 1);
  const int octave = std::bit_width(above) - 1;                     // 3 for 9..16
  const int quarter = static_cast<int>(above >> (octave - 2)) & 3;  // its two bits below the top
  return 8 + 4 * (octave - 3) + quarter;
}

double CostModel::correction(Kind kind, int bucket) const {
  const auto nearest = [&](const std::array<Correction, kBuckets>& row) -> const Correction* {
    for (int distance = 0; distance < kBuckets; ++distance) {
      for (const int i : {bucket - distance, bucket + distance}) {
        if (i >= 0 && i < kBuckets && row[static_cast<size_t>(i)].count > 0) {
          return &row[static_cast<size_t>(i)];
        }
      }
    }
    return nullptr;
  };
  if (const Correction* own = nearest(corrections_[kind])) return own->factor;
  for (const auto& row : corrections_) {
    if (const Correction* other = nearest(row)) return other->factor;
  }
  return 1;
}

double CostModel::predict(const PassShape& shape) const {
  const int bucket = bucket_of(shape.ar_rows + shape.diffusion_rows);
  return analytic(shape) * correction(kind_of(shape), bucket);
}

void CostModel::observe(const PassShape& shape, double seconds) {
  const double expected = analytic(shape);
  if (!(expected > 0) || !(seconds > 0)) return;
  const Kind kind = kind_of(shape);
  const int bucket = bucket_of(shape.ar_rows + shape.diffusion_rows);
  const double before = correction(kind, bucket);
  Correction& learned = corrections_[kind][static_cast<size_t>(bucket)];
  // The first passes count as a mean, later ones with a tenth. What disturbs a pass makes it
  // longer, so a step up is bounded more tightly than one down.
  const double up = learned.count == 0 ? 4.0 : learned.count < 4 ? 2.0 : 1.5;
  const double weight = std::max(0.1, 1.0 / static_cast<double>(learned.count + 1));
  const double ratio = std::clamp(seconds / expected, before / 4, before * up);
  learned.factor = before + weight * (ratio - before);
  ++learned.count;
}

int64_t CostModel::observations(const PassShape& shape) const {
  const int bucket = bucket_of(shape.ar_rows + shape.diffusion_rows);
  return corrections_[kind_of(shape)][static_cast<size_t>(bucket)].count;
}

}  // namespace orthrus
