#include "decode/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orthrus {
namespace {

/// Shares of the peak that the matrix kernels reach with many rows (`orthrus bench --cases rows`).
constexpr double kFloatEfficiency = 0.85;
constexpr double kInt8Efficiency = 0.7;
/// And of attention (`orthrus bench --cases attention`).
constexpr double kAttentionEfficiency = 0.5;
/// Shares of a pass's error that its own factor and the machine's memory take up.
constexpr double kFactorRate = 0.02;
constexpr double kDriftRate = 0.1;

void add(WeightCost& cost, const PackedMatrix& matrix) {
  cost.add(matrix.form(), static_cast<double>(matrix.bytes()),
           static_cast<double>(matrix.rows()) * static_cast<double>(matrix.cols()));
}

void add(WeightCost& cost, const AttentionWeights& weights) {
  for (const PackedMatrix* matrix :
       {&weights.q_proj, &weights.k_proj, &weights.v_proj, &weights.o_proj}) {
    add(cost, *matrix);
  }
}

/// 0 for no work, whatever the rate.
double seconds_of(double operations, double per_second) {
  return operations > 0 ? operations / per_second : 0;
}

}  // namespace

void WeightCost::add(TensorType form, double packed_bytes, double macs) {
  bytes += packed_bytes;
  if (traits(form).block_elements > 1) {
    int8_macs += macs;
  } else {
    (form == TensorType::kBF16 ? bf16_macs : f32_macs) += macs;
  }
}

void PassShape::add(View view, int64_t rows, int64_t wanted_logits, int64_t position,
                    int64_t sequences) {
  (view == View::kAr ? ar_rows : diffusion_rows) += sequences * rows;
  logit_rows += sequences * wanted_logits;
  if (view == View::kDiffusion) draft_logit_rows += sequences * wanted_logits;
  context_tokens += sequences * position;
  // A block of the diffusion view sees itself whole, AR rows those before them.
  const int64_t own = view == View::kAr ? rows * (rows + 1) / 2 : rows * rows;
  attended += sequences * (rows * position + own);
}

void PassShape::add(const Span& span) {
  add(span.view, static_cast<int64_t>(span.tokens.size()), span.logits_end - span.logits_begin,
      span.first_position);
  if (span.whole_logits) draft_logit_rows -= span.logits_end - span.logits_begin;
}

ModelCost ModelCost::of(const Model& model, const KvLayout& layout) {
  ModelCost cost;
  for (const LayerWeights& layer : model.layers) {
    add(cost.ar, layer.ar);
    if (layer.diff) add(cost.diffusion, *layer.diff);
    for (const auto member :
         {&MlpWeights::gate_proj, &MlpWeights::up_proj, &MlpWeights::down_proj}) {
      const PackedMatrix& matrix = layer.mlp.*member;
      const PackedMatrix& twin = layer.draft_mlp ? (*layer.draft_mlp).*member : matrix;
      if (twin.same_as(matrix)) {
        add(cost.shared, matrix);
      } else {
        add(cost.ar, matrix);
        add(cost.diffusion, twin);
      }
    }
  }
  add(cost.lm_head, model.lm_head);
  if (model.draft_lm_head) add(cost.draft_lm_head.emplace(), *model.draft_lm_head);
  cost.kv_bytes_per_token =
      static_cast<double>(layout.block_bytes()) / static_cast<double>(kKvBlockTokens);
  const ModelConfig& config = model.config;
  cost.attention_macs = 2.0 * static_cast<double>(config.num_layers) *
                        static_cast<double>(config.num_heads) *
                        static_cast<double>(config.head_dim);
  cost.attention_bf16 = layout.key_type == KvType::kBF16 && layout.value_type == KvType::kBF16;
  return cost;
}

void CostModel::Estimate::add(double reading, double computing) {
  const double both = std::hypot(reading, computing);
  seconds += both;
  if (both > 0) memory_seconds += reading * reading / both;
}

CostModel::Estimate CostModel::analytic(const PassShape& shape) const {
  Estimate estimate;
  const double second_per_byte = memory_slowdown_ / rates_.bytes_per_second;
  const auto add_weights = [&](const WeightCost& cost, int64_t rows) {
    if (rows == 0) return;
    const double ops = 2 * static_cast<double>(rows);
    estimate.add(cost.bytes * second_per_byte,
                 seconds_of(ops * cost.f32_macs, kFloatEfficiency * rates_.f32_flops) +
                     seconds_of(ops * cost.bf16_macs, kFloatEfficiency * rates_.bf16_flops) +
                     seconds_of(ops * cost.int8_macs, kInt8Efficiency * rates_.int8_ops));
  };
  add_weights(model_.shared, shape.ar_rows + shape.diffusion_rows);
  add_weights(model_.ar, shape.ar_rows);
  add_weights(model_.diffusion, shape.diffusion_rows);
  const int64_t own = model_.draft_lm_head ? shape.draft_logit_rows : 0;
  add_weights(model_.lm_head, shape.logit_rows - own);
  if (own > 0) add_weights(*model_.draft_lm_head, own);
  estimate.add(
      static_cast<double>(shape.context_tokens) * model_.kv_bytes_per_token * second_per_byte,
      2 * static_cast<double>(shape.attended) * model_.attention_macs /
          (kAttentionEfficiency * (model_.attention_bf16 ? rates_.bf16_flops : rates_.f32_flops)));
  return estimate;
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
  return analytic(shape).seconds * correction(kind_of(shape), bucket);
}

void CostModel::observe(const PassShape& shape, double seconds) {
  const Estimate expected = analytic(shape);
  if (!(expected.seconds > 0) || !(seconds > 0)) return;
  const Kind kind = kind_of(shape);
  const int bucket = bucket_of(shape.ar_rows + shape.diffusion_rows);
  const double before = correction(kind, bucket);
  Correction& learned = corrections_[kind][static_cast<size_t>(bucket)];
  // What disturbs a pass makes it longer, so a step up is bounded more tightly than one down.
  const double up = learned.count == 0 ? 4.0 : learned.count < 4 ? 2.0 : 1.5;
  const double error = std::log(std::clamp(seconds / (expected.seconds * before), 0.25, up));
  // The first passes count as a mean; later errors are the machine's more than the estimate's.
  const double weight = std::max(kFactorRate, 1.0 / static_cast<double>(learned.count + 1));
  learned.factor = before * std::exp(weight * error);
  if (learned.count > 0) {
    const double memory_share = expected.memory_seconds / expected.seconds;
    memory_slowdown_ =
        std::clamp(memory_slowdown_ * std::exp(kDriftRate * memory_share * error), 0.05, 20.0);
  }
  ++learned.count;
}

AcceptanceProfile& CostModel::acceptance(double temperature) {
  const size_t kind = temperature <= 0 ? 0 : temperature <= 0.5 ? 1 : temperature <= 1 ? 2 : 3;
  return acceptance_[kind];
}

int64_t CostModel::observations(const PassShape& shape) const {
  const int bucket = bucket_of(shape.ar_rows + shape.diffusion_rows);
  return corrections_[kind_of(shape)][static_cast<size_t>(bucket)].count;
}

}  // namespace orthrus
