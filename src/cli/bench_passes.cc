#include "cli/bench_passes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "decode/decoder.h"

namespace orthrus {
namespace {

/// Values between -1 and 1, the same on every run.
std::vector<float> noise(size_t size) {
  std::vector<float> values(size);
  uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

int64_t q_size(const ModelConfig& c) { return c.num_heads * c.head_dim; }
int64_t kv_size(const ModelConfig& c) { return c.num_kv_heads * c.head_dim; }

void add(PassWork& work, const WeightCost& cost, int64_t rows) {
  if (rows == 0) return;
  work.bytes += cost.bytes;
  work.f32_ops += 2 * cost.f32_macs * static_cast<double>(rows);
  work.int8_ops += 2 * cost.int8_macs * static_cast<double>(rows);
  work.bf16_ops += 2 * cost.bf16_macs * static_cast<double>(rows);
}

/// What attention reads and computes in the pass.
PassWork attention_part(const ModelCost& cost, const PassShape& shape) {
  PassWork work;
  work.bytes = static_cast<double>(shape.context_tokens) * cost.kv_bytes_per_token;
  const double ops = 2 * cost.attention_macs * static_cast<double>(shape.attended);
  (cost.attention_bf16 ? work.bf16_ops : work.f32_ops) = ops;
  return work;
}

}  // namespace

MatmulPass::MatmulPass(const Model& model, ComputeContext context, int64_t max_rows)
    : model_(model), context_(context) {
  const ModelConfig& c = model.config;
  const int64_t cols = std::max({c.hidden_size, q_size(c), c.intermediate_size});
  const int64_t outputs =
      std::max({q_size(c) + 2 * kv_size(c), 2 * c.intermediate_size, c.hidden_size, c.vocab_size});
  x_ = noise(static_cast<size_t>(max_rows * cols));
  out_.resize(static_cast<size_t>(max_rows * outputs));
  activations_.reserve(max_rows, cols, {.groups = true, .bf16 = true});
}

void MatmulPass::product(std::initializer_list<const PackedMatrix*> weights, int64_t rows) {
  std::array<MatmulTask, 3> tasks;
  size_t count = 0;
  ActivationForms forms;
  float* out = out_.data();
  for (const PackedMatrix* weight : weights) {
    tasks[count++] = {weight, 0, rows, out, weight->rows()};
    out += rows * weight->rows();
    forms |= activation_forms(*weight);
  }
  const int64_t cols = tasks[0].weight->cols();
  activations_.set(context_, x_.data(), cols, rows, cols, forms);
  matmul(context_, activations_, {tasks.data(), count});
}

void MatmulPass::run(int64_t rows) {
  for (const LayerWeights& w : model_.layers) {
    product({&w.ar.q_proj, &w.ar.k_proj, &w.ar.v_proj}, rows);
    product({&w.ar.o_proj}, rows);
    product({&w.mlp.gate_proj, &w.mlp.up_proj}, rows);
    product({&w.mlp.down_proj}, rows);
  }
  product({&model_.lm_head}, rows);
}

BenchSequence::BenchSequence(const Model& model, ComputeContext context, KvType kv_type,
                             int64_t capacity, int64_t max_rows)
    : model_(model),
      context_(context),
      pool_(kv_layout(model.config, kv_type, kv_type), blocks_for(capacity)),
      table_(pool_),
      forward_(model, pool_.layout(), context, max_rows),
      cost_(model, pool_.layout(), {1e10, 1e11, 1e11, 1e11}),  // any: blocks have a fixed length
      query_(noise(static_cast<size_t>(max_rows * q_size(model.config)))),
      attended_(query_.size()) {
  table_.reserve(capacity);
  fill_cache();
  for (int64_t i = 0; i < max_rows; ++i) {
    tokens_.push_back(static_cast<int32_t>(i * 7919 % model.config.vocab_size));
  }
  draft_tokens_.assign(tokens_.size(), kMaskToken);
  draft_tokens_.front() = tokens_.front();
}

/// Untouched memory would all be one page of zeros, which reads much faster than real keys.
void BenchSequence::fill_cache() {
  const KvLayout& kv = layout();
  const auto width = static_cast<size_t>(kv.kv_heads * kv.head_dim);
  const std::vector<float> values = noise(3 * width);
  context_.pool.parallel_for(table_.capacity(), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      std::byte* const block = table_.blocks()[static_cast<size_t>(t / kKvBlockTokens)];
      const auto at = static_cast<size_t>(t * 31) % width;
      for (int64_t layer = 0; layer < kv.layers; ++layer) {
        write_kv(kv, layer, block, t % kKvBlockTokens, values.data() + at,
                 values.data() + width + at);
      }
    }
  });
}

void BenchSequence::ar_pass(int64_t rows, int64_t first_position, int64_t logit_rows) {
  const Span span{&table_,        View::kAr,         {tokens_.data(), static_cast<size_t>(rows)},
                  first_position, rows - logit_rows, rows};
  forward_.run(span);
}

void BenchSequence::diffusion_pass(int64_t rows, int64_t anchor_position) {
  const Span span{
      &table_, View::kDiffusion, {draft_tokens_.data(), static_cast<size_t>(rows)}, anchor_position,
      0,       rows - 1};
  forward_.run(span);
}

double BenchSequence::cycle_seconds(int64_t block, int64_t context) {
  std::vector<int32_t> prompt(static_cast<size_t>(context + 1));
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = tokens_[i % tokens_.size()];
  GenerateOptions options;
  options.max_new_tokens = 2 * block;
  options.draft_max = block - 1;
  table_.set_length(context);
  Decoder decoder({.model = &model_,
                   .table = &table_,
                   .prompt = prompt,
                   .options = &options,
                   .eos_token_ids = {},
                   .max_seq_len = table_.capacity(),
                   .prefill_chunk = 1,
                   .cost = &cost_,
                   .sink = nullptr,
                   .isa = context_.isa});
  DecodeLoop loop(forward_, cost_);
  Decoder* const decoders[] = {&decoder};
  DecodeLoop::Times times[1];
  loop.step(decoders, times);  // the last token of the prompt
  while (decoder.result().cycles == 0) loop.step(decoders, times);
  table_.set_length(0);
  return times[0].decode_seconds;
}

void BenchSequence::attention_pass(int64_t rows, int64_t context_tokens) {
  const ModelConfig& c = model_.config;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  const int64_t width = q_size(c);
  attention_rows_.clear();
  for (int64_t i = 0; i < rows; ++i) {
    attention_rows_.push_back({query_.data() + i * width,
                               attended_.data() + i * width,
                               table_.blocks(),
                               context_tokens + i,
                               {},
                               0});
  }
  for (int64_t layer = 0; layer < c.num_layers; ++layer) {
    attention(context_, layout(), layer, c.num_heads, scale, attention_rows_, workspace_);
  }
}

PassWork pass_work(const Model& model, const KvLayout& layout, View view, int64_t rows,
                   int64_t first_position, int64_t logit_rows) {
  const ModelCost cost = ModelCost::of(model, layout);
  PassShape shape;
  shape.add(view, rows, logit_rows, first_position);
  PassWork work = attention_part(cost, shape);
  add(work, cost.shared, rows);
  add(work, view == View::kAr ? cost.ar : cost.diffusion, rows);
  const bool own_head = view == View::kDiffusion && cost.draft_lm_head;
  add(work, own_head ? *cost.draft_lm_head : cost.lm_head, logit_rows);
  return work;
}

PassWork matmul_work(const Model& model, int64_t rows) {
  const ModelCost cost = ModelCost::of(model, KvLayout{});
  PassWork work;
  add(work, cost.shared, rows);
  add(work, cost.ar, rows);
  add(work, cost.lm_head, rows);
  return work;
}

PassWork attention_work(const Model& model, const KvLayout& layout, int64_t rows,
                        int64_t context_tokens) {
  const ModelCost cost = ModelCost::of(model, layout);
  PassShape shape;
  shape.add(View::kAr, rows, 0, context_tokens - 1);
  shape.context_tokens = context_tokens - 1 + rows;  // the rows' own keys are read, not written
  return attention_part(cost, shape);
}

}  // namespace orthrus
