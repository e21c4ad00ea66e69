#include "model/dequantize.h"

namespace orthrus {
namespace {

PackedMatrix as_f32(const PackedMatrix& matrix, ThreadPool& pool) {
  const int64_t rows = matrix.rows();
  const int64_t cols = matrix.cols();
  AlignedBuffer values(static_cast<size_t>(rows * cols) * sizeof(float));
  float* const out = values.as<float>();
  pool.parallel_for(rows, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) unpack_row(matrix, r, out + r * cols);
  });
  MatrixSource source;
  source.type = TensorType::kF32;
  source.data = {values.data(), values.size()};
  source.rows = rows;
  source.cols = cols;
  return pack(source, WeightFormat::kF32, pool);
}

AttentionWeights as_f32(const AttentionWeights& from, ThreadPool& pool) {
  AttentionWeights w;
  w.q_proj = as_f32(from.q_proj, pool);
  w.k_proj = as_f32(from.k_proj, pool);
  w.v_proj = as_f32(from.v_proj, pool);
  w.o_proj = as_f32(from.o_proj, pool);
  w.q_norm = from.q_norm;
  w.k_norm = from.k_norm;
  w.q_bias = from.q_bias;
  w.k_bias = from.k_bias;
  w.v_bias = from.v_bias;
  w.o_bias = from.o_bias;
  return w;
}

LayerWeights as_f32(const LayerWeights& from, ThreadPool& pool) {
  LayerWeights w;
  w.input_norm = from.input_norm;
  w.ar = as_f32(from.ar, pool);
  w.post_attention_norm = from.post_attention_norm;
  w.mlp.gate_proj = as_f32(from.mlp.gate_proj, pool);
  w.mlp.up_proj = as_f32(from.mlp.up_proj, pool);
  w.mlp.down_proj = as_f32(from.mlp.down_proj, pool);
  w.mlp.gate_bias = from.mlp.gate_bias;
  w.mlp.up_bias = from.mlp.up_bias;
  w.mlp.down_bias = from.mlp.down_bias;
  return w;
}

}  // namespace

Model dequantized(const Model& model, ThreadPool& pool) {
  Model result;
  result.config = model.config;
  result.lm_head = as_f32(model.lm_head, pool);
  if (model.embedding) result.embedding = as_f32(*model.embedding, pool);
  for (const LayerWeights& layer : model.layers) result.layers.push_back(as_f32(layer, pool));
  result.final_norm = model.final_norm;
  result.rope_inv_freq = model.rope_inv_freq;
  return result;
}

}  // namespace orthrus
