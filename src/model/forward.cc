#include "model/forward.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/fp_state.h"
#include "kernels/attention.h"
#include "kernels/matmul.h"
#include "kernels/row_ops.h"

namespace orthrus {
namespace {

/// f32 scratch [max_rows, cols]. Rows are a cache line apart from each other: strides that are
/// powers of two would put all rows into the same sets of the cache.
class RowBuffer {
 public:
  static constexpr int64_t kPad = 16;

  RowBuffer(int64_t rows, int64_t cols, int64_t pad = kPad)
      : stride_(cols + pad), buffer_(bytes(rows, cols, pad)) {}
  static size_t bytes(int64_t rows, int64_t cols, int64_t pad = kPad) {
    return static_cast<size_t>(rows * (cols + pad)) * sizeof(float);
  }
  float* row(int64_t i) { return buffer_.as<float>() + i * stride_; }
  float* data() { return buffer_.as<float>(); }
  int64_t stride() const { return stride_; }

 private:
  int64_t stride_;
  AlignedBuffer buffer_;
};

/// A row of the pass: AR rows of all spans come first, then the diffusion rows, so that each view's
/// projections run over one range.
struct Row {
  int32_t token;
  int64_t position;
  std::byte* kv_block;  // where its key and value go: the cache (AR) or the span's scratch
  int64_t kv_slot;
};

KvLayout scratch_layout_of(KvLayout layout) {
  layout.layers = 1;
  return layout;
}

/// A row whose logits are wanted: as row `index` of a span's reader, or else written to `out`.
struct WantedRow {
  int64_t row;
  OutputReader* reader;
  int64_t index;
  float* out;
};

/// Hands out the rows of a product with lm_head.
class HeadRows : public OutputReader {
 public:
  explicit HeadRows(std::span<const WantedRow> rows) : rows_(rows) {}
  int64_t size() const { return static_cast<int64_t>(rows_.size()); }
  /// Where the first of them is written; the others follow, if none goes to a reader.
  float* out() const { return rows_.front().out; }
  /// Whether any of them goes to a reader: then those that do not are copied piece by piece too, as
  /// a product of their own would read lm_head once more.
  bool have_reader() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const WantedRow& w) { return w.reader; });
  }
  void begin(int threads) override {
    for (const WantedRow& wanted : rows_) {
      if (wanted.reader != nullptr && wanted.index == 0) wanted.reader->begin(threads);
    }
  }
  void read(int thread, int64_t row, int64_t first, std::span<const float> values) override {
    const WantedRow& wanted = rows_[static_cast<size_t>(row)];
    if (wanted.reader != nullptr) return wanted.reader->read(thread, wanted.index, first, values);
    std::copy(values.begin(), values.end(), wanted.out + first);
  }

 private:
  std::span<const WantedRow> rows_;
};

/// A model's views may have matrices of all kinds. Memory that none of them needs stays untouched.
constexpr ActivationForms kAnyForms{.groups = true, .bf16 = true};

/// Inputs of the widest product.
int64_t most_inputs(const ModelConfig& c) {
  return std::max({c.hidden_size, c.num_heads * c.head_dim, c.intermediate_size});
}

size_t attention_bytes(const ModelConfig& c, const KvLayout& layout, int threads, int64_t rows,
                       int64_t tokens) {
  return attention_workspace_bytes(threads, layout, c.num_heads, rows, tokens, c.block_size);
}

/// Below this many floats of elementwise work a parallel section costs more than it saves.
constexpr int64_t kParallelElements = 16384;

}  // namespace

struct Forward::Impl {
  Impl(const Model& m, const KvLayout& kv, ComputeContext ctx, int64_t rows_max, int64_t max_tokens)
      : model(m),
        c(m.config),
        layout(kv),
        context(ctx),
        ops(row_ops(ctx.isa)),
        max_rows(rows_max),
        q_size(c.num_heads * c.head_dim),
        kv_size(c.num_kv_heads * c.head_dim),
        scratch_layout(scratch_layout_of(kv)),
        x(max_rows, c.hidden_size),
        normed(max_rows, c.hidden_size),
        q(max_rows, q_size),
        k(max_rows, kv_size),
        v(max_rows, kv_size),
        mixed(max_rows, q_size),
        gate(max_rows, c.intermediate_size),
        up(max_rows, c.intermediate_size),
        delta(max_rows, c.hidden_size),
        logits(max_rows, c.vocab_size, 0),
        cos(max_rows, c.head_dim / 2),
        sin(max_rows, c.head_dim / 2) {
    rows.reserve(static_cast<size_t>(max_rows));
    attention_rows.reserve(static_cast<size_t>(max_rows));
    wanted.reserve(static_cast<size_t>(max_rows));
    span_logits.reserve(static_cast<size_t>(max_rows));
    // A diffusion span takes whole scratch blocks, so at worst a block a row.
    scratch.reserve(static_cast<size_t>(max_rows));
    activations.reserve(max_rows, most_inputs(c), kAnyForms);
    workspace.reserve_all(attention_bytes(c, kv, ctx.pool.size(), max_rows, max_tokens));
  }

  /// fn(row) for rows [0, count), in parallel where the work is worth it.
  template <typename Fn>
  void for_rows(int64_t count, int64_t elements, Fn&& fn) {
    if (count * elements < kParallelElements || count < 2) {
      for (int64_t i = 0; i < count; ++i) fn(i);
      return;
    }
    context.pool.parallel_for(count, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) fn(i);
    });
  }

  void place_rows(std::span<const Span> spans);
  void place_span(const Span& span);
  std::byte* const* take_scratch(int64_t tokens);
  void embed();
  void attend(int64_t layer);
  void project_qkv(const LayerWeights& layer);
  void rotate_and_store(int64_t layer);
  void feed_forward(const LayerWeights& layer);
  void project_logits();
  void copy_trace() {
    for (int64_t i = 0; i < row_count(); ++i) {
      std::copy_n(x.row(i), c.hidden_size, trace + i * c.hidden_size);
    }
  }
  void norm(const std::vector<float>& weight, int64_t count);
  /// Rows [0, count) of `in`, `cols` wide, become the input of the coming matmuls.
  void set_input(RowBuffer& in, int64_t cols, int64_t count, ActivationForms forms) {
    activations.set(context, in.data(), in.stride(), count, cols, forms);
  }
  MatmulTask task(const PackedMatrix& weight, bool diffusion, RowBuffer& out,
                  const std::vector<float>& bias);
  struct SharedProduct {
    const PackedMatrix* weight;
    const PackedMatrix* twin;  // for the diffusion rows, or null
    const float* bias;
    RowBuffer* out;
  };
  void shared_products(std::initializer_list<SharedProduct> products, int64_t ar_count,
                       int64_t count, RowBuffer& in, int64_t cols);

  int64_t row_count() const { return static_cast<int64_t>(rows.size()); }

  const Model& model;
  const ModelConfig& c;
  const KvLayout layout;
  const ComputeContext context;
  const RowOps& ops;
  const int64_t max_rows;
  const int64_t q_size, kv_size;
  const KvLayout scratch_layout;  // one layer, for the keys and values of diffusion blocks

  RowBuffer x;         // residual stream [rows, hidden]
  RowBuffer normed;    // [rows, hidden]
  RowBuffer q;         // [rows, heads * head_dim]
  RowBuffer k, v;      // [rows, kv_heads * head_dim]
  RowBuffer mixed;     // attention output [rows, heads * head_dim]
  RowBuffer gate, up;  // [rows, intermediate]
  RowBuffer delta;     // what a sublayer adds to the residual stream [rows, hidden]
  RowBuffer logits;    // [wanted rows, vocab]
  RowBuffer cos, sin;  // [rows, head_dim / 2]
  Activations activations;
  AttentionWorkspace workspace;

  std::vector<Row> rows;
  int64_t ar_rows = 0;  // rows [0, ar_rows) are AR, the rest diffusion
  std::vector<AttentionRow> attention_rows;
  std::vector<WantedRow> wanted;                    // those that draft last
  int64_t wanted_whole = 0;                         // of these, rows for the AR view's lm_head
  std::vector<std::span<const float>> span_logits;  // of each span
  std::vector<std::byte*> scratch;                  // handed out so far in this pass
  std::vector<AlignedBuffer> scratch_memory;        // one block each, kept
  int64_t traced_layer = -1;
  float* trace = nullptr;
};

std::byte* const* Forward::Impl::take_scratch(int64_t tokens) {
  const size_t first = scratch.size();
  for (int64_t t = 0; t < tokens; t += kKvBlockTokens) {
    if (scratch.size() == scratch_memory.size()) {
      scratch_memory.emplace_back(scratch_layout.block_bytes());
    }
    scratch.push_back(scratch_memory[scratch.size()].data());
  }
  return scratch.data() + first;
}

void Forward::Impl::place_span(const Span& span) {
  const auto count = static_cast<int64_t>(span.tokens.size());
  const auto blocks = span.table->blocks();
  const bool diffusion = span.view == View::kDiffusion;
  std::byte* const* own = diffusion ? take_scratch(count) : nullptr;
  ORTHRUS_CHECK(diffusion || span.first_position + count <= span.table->capacity());
  const int64_t first_row = row_count();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t position = span.first_position + i;
    const int64_t slot = diffusion ? i : position;
    std::byte* const* home = diffusion ? own : blocks.data();
    rows.push_back({span.tokens[static_cast<size_t>(i)], position, home[slot / kKvBlockTokens],
                    slot % kKvBlockTokens});
    AttentionRow row{q.row(first_row + i), mixed.row(first_row + i), blocks, position + 1, {}, 0};
    if (diffusion) {
      row.length = span.first_position;
      row.own_blocks = {own, static_cast<size_t>(blocks_for(count))};
      row.own_length = count;
    }
    attention_rows.push_back(row);
  }
}

void Forward::Impl::place_rows(std::span<const Span> spans) {
  rows.clear();
  attention_rows.clear();
  wanted.clear();
  scratch.clear();
  size_t total = 0;
  for (const Span& span : spans) total += span.tokens.size();
  ORTHRUS_CHECK(static_cast<int64_t>(total) <= max_rows);
  for (const Span& span : spans) {
    if (span.view == View::kAr) place_span(span);
  }
  ar_rows = row_count();
  for (const Span& span : spans) {
    if (span.view == View::kDiffusion) place_span(span);
  }
  ORTHRUS_CHECK(ar_rows == row_count() || model.has_diffusion());
  // Those of the AR view's lm_head, then those of the drafts'.
  span_logits.resize(spans.size());
  float* next_logits = logits.data();
  for (const bool drafts : {false, true}) {
    const int64_t vocab = drafts ? model.draft_vocab() : c.vocab_size;
    int64_t next_ar = 0, next_diffusion = ar_rows;
    for (size_t s = 0; s < spans.size(); ++s) {
      const Span& span = spans[s];
      int64_t& next = span.view == View::kAr ? next_ar : next_diffusion;
      if (span.drafts() == drafts) {
        const float* const first = next_logits;
        for (int64_t i = span.logits_begin; i < span.logits_end; ++i) {
          float* const out = span.reader == nullptr ? next_logits : nullptr;
          wanted.push_back({next + i, span.reader, i - span.logits_begin, out});
          if (out != nullptr) next_logits += vocab;
        }
        span_logits[s] = {first, next_logits};
      }
      next += static_cast<int64_t>(span.tokens.size());
    }
    if (!drafts) wanted_whole = static_cast<int64_t>(wanted.size());
  }
}

void Forward::Impl::embed() {
  const PackedMatrix& embedding = model.embedding_matrix();
  const auto half = static_cast<int64_t>(model.rope_inv_freq.size());
  for_rows(row_count(), c.hidden_size, [&](int64_t i) {
    const Row& row = rows[static_cast<size_t>(i)];
    if (row.token == kMaskToken && !model.mask_embedding.empty()) {
      std::copy(model.mask_embedding.begin(), model.mask_embedding.end(), x.row(i));
    } else {
      const int64_t id = row.token == kMaskToken ? c.mask_token_id : row.token;
      ORTHRUS_CHECK(id >= 0 && id < embedding.rows());
      unpack_row(embedding, id, x.row(i));
    }
    for (int64_t j = 0; j < half; ++j) {
      // The angle is rounded to float as in HF, its cosine is not.
      const float angle =
          static_cast<float>(row.position) * model.rope_inv_freq[static_cast<size_t>(j)];
      const double factor = c.rope.attention_factor;
      cos.row(i)[j] = static_cast<float>(factor * std::cos(static_cast<double>(angle)));
      sin.row(i)[j] = static_cast<float>(factor * std::sin(static_cast<double>(angle)));
    }
  });
}

void Forward::Impl::norm(const std::vector<float>& weight, int64_t count) {
  for_rows(count, c.hidden_size, [&](int64_t i) {
    ops.rms_norm(x.row(i), weight.data(), static_cast<float>(c.rms_norm_eps), c.hidden_size,
                 normed.row(i));
  });
}

MatmulTask Forward::Impl::task(const PackedMatrix& weight, bool diffusion, RowBuffer& out,
                               const std::vector<float>& bias) {
  const int64_t begin = diffusion ? ar_rows : 0;
  const int64_t count = diffusion ? row_count() - ar_rows : ar_rows;
  return {&weight,        begin,        count,
          out.row(begin), out.stride(), bias.empty() ? nullptr : bias.data()};
}

/// Products of both views' rows, the first `ar_count` of `count`, with the weights that they share
/// or with the twin.
void Forward::Impl::shared_products(std::initializer_list<SharedProduct> products, int64_t ar_count,
                                    int64_t count, RowBuffer& in, int64_t cols) {
  std::array<MatmulTask, 4> tasks;
  size_t task_count = 0;
  ActivationForms forms;
  for (const SharedProduct& p : products) {
    const auto add = [&](const PackedMatrix& weight, int64_t begin, int64_t end) {
      if (begin == end) return;
      tasks[task_count++] = {&weight,           begin,           end - begin,
                             p.out->row(begin), p.out->stride(), p.bias};
      forms |= activation_forms(weight);
    };
    const bool twin = p.twin != nullptr && !p.twin->same_as(*p.weight);
    add(*p.weight, 0, twin ? ar_count : count);
    if (twin) add(*p.twin, ar_count, count);
  }
  set_input(in, cols, count, forms);
  matmul(context, activations, {tasks.data(), task_count});
}

void Forward::Impl::project_qkv(const LayerWeights& layer) {
  std::array<MatmulTask, 6> tasks;
  size_t count = 0;
  ActivationForms forms;
  const auto add = [&](const AttentionWeights& w, bool diffusion) {
    tasks[count++] = task(w.q_proj, diffusion, q, w.q_bias);
    tasks[count++] = task(w.k_proj, diffusion, k, w.k_bias);
    tasks[count++] = task(w.v_proj, diffusion, v, w.v_bias);
    for (const PackedMatrix* m : {&w.q_proj, &w.k_proj, &w.v_proj}) forms |= activation_forms(*m);
  };
  if (ar_rows > 0) add(layer.ar, false);
  if (row_count() > ar_rows) add(*layer.diff, true);
  set_input(normed, c.hidden_size, row_count(), forms);
  matmul(context, activations, {tasks.data(), count});
}

void Forward::Impl::rotate_and_store(int64_t layer) {
  const LayerWeights& weights = model.layers[static_cast<size_t>(layer)];
  const auto eps = static_cast<float>(c.rms_norm_eps);
  for_rows(row_count(), q_size + 2 * kv_size, [&](int64_t i) {
    const bool diffusion = i >= ar_rows;
    const AttentionWeights& w = diffusion ? *weights.diff : weights.ar;
    const auto heads = [&](float* data, int64_t count, const std::vector<float>& head_norm) {
      for (float* head = data; head < data + count * c.head_dim; head += c.head_dim) {
        if (!head_norm.empty()) ops.rms_norm(head, head_norm.data(), eps, c.head_dim, head);
        ops.rotate(head, cos.row(i), sin.row(i), c.head_dim);
      }
    };
    heads(q.row(i), c.num_heads, w.q_norm);
    heads(k.row(i), c.num_kv_heads, w.k_norm);
    const Row& row = rows[static_cast<size_t>(i)];
    write_kv(diffusion ? scratch_layout : layout, diffusion ? 0 : layer, row.kv_block, row.kv_slot,
             k.row(i), v.row(i));
  });
}

void Forward::Impl::attend(int64_t layer) {
  const LayerWeights& weights = model.layers[static_cast<size_t>(layer)];
  norm(weights.input_norm, row_count());
  project_qkv(weights);
  rotate_and_store(layer);
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(c.head_dim)));
  attention(context, layout, layer, c.num_heads, scale, attention_rows, workspace);

  std::array<MatmulTask, 2> tasks;
  size_t count = 0;
  ActivationForms forms;
  const auto add = [&](const AttentionWeights& w, bool diffusion) {
    tasks[count++] = task(w.o_proj, diffusion, delta, w.o_bias);
    forms |= activation_forms(w.o_proj);
  };
  if (ar_rows > 0) add(weights.ar, false);
  if (row_count() > ar_rows) add(*weights.diff, true);
  set_input(mixed, q_size, row_count(), forms);
  matmul(context, activations, {tasks.data(), count});
  for_rows(row_count(), c.hidden_size,
           [&](int64_t i) { ops.add(x.row(i), delta.row(i), c.hidden_size); });
}

void Forward::Impl::feed_forward(const LayerWeights& w) {
  norm(w.post_attention_norm, row_count());
  const MlpWeights& mlp = w.mlp;
  const auto product = [&](PackedMatrix MlpWeights::*matrix, const std::vector<float>& bias,
                           RowBuffer& out) {
    return SharedProduct{&(mlp.*matrix), w.draft_mlp ? &((*w.draft_mlp).*matrix) : nullptr,
                         bias.empty() ? nullptr : bias.data(), &out};
  };
  shared_products({product(&MlpWeights::gate_proj, mlp.gate_bias, gate),
                   product(&MlpWeights::up_proj, mlp.up_bias, up)},
                  ar_rows, row_count(), normed, c.hidden_size);
  for_rows(row_count(), c.intermediate_size, [&](int64_t i) {
    ops.silu_mul(gate.row(i), up.row(i), c.intermediate_size, gate.row(i));
  });
  shared_products({product(&MlpWeights::down_proj, mlp.down_bias, delta)}, ar_rows, row_count(),
                  gate, c.intermediate_size);
  for_rows(row_count(), c.hidden_size,
           [&](int64_t i) { ops.add(x.row(i), delta.row(i), c.hidden_size); });
}

void Forward::Impl::project_logits() {
  const auto count = static_cast<int64_t>(wanted.size());
  if (count == 0) return;
  for_rows(count, c.hidden_size, [&](int64_t i) {
    ops.rms_norm(x.row(wanted[static_cast<size_t>(i)].row), model.final_norm.data(),
                 static_cast<float>(c.rms_norm_eps), c.hidden_size, normed.row(i));
  });
  const PackedMatrix& draft_head = model.draft_lm_head ? *model.draft_lm_head : model.lm_head;
  const int64_t split = draft_head.same_as(model.lm_head) ? count : wanted_whole;
  const std::span<const WantedRow> all(wanted);
  HeadRows whole_rows(all.first(static_cast<size_t>(split)));
  HeadRows draft_rows(all.subspan(static_cast<size_t>(split)));
  std::array<MatmulTask, 2> tasks;
  size_t task_count = 0;
  ActivationForms forms;
  const auto add = [&](const PackedMatrix& head, int64_t begin, HeadRows& wanted_rows) {
    if (wanted_rows.size() == 0) return;
    tasks[task_count++] = {
        .weight = &head,
        .row_begin = begin,
        .row_count = wanted_rows.size(),
        .out = wanted_rows.out(),
        .out_stride = head.rows(),
        .reader = wanted_rows.have_reader() ? &wanted_rows : nullptr,
    };
    forms |= activation_forms(head);
  };
  add(model.lm_head, 0, whole_rows);
  add(draft_head, split, draft_rows);
  set_input(normed, c.hidden_size, count, forms);
  matmul(context, activations, {tasks.data(), task_count});
}

Forward::Forward(const Model& model, const KvLayout& layout, ComputeContext context,
                 int64_t max_rows, int64_t max_tokens)
    : impl_(std::make_unique<Impl>(model, layout, context, max_rows, max_tokens)) {}
Forward::~Forward() = default;

size_t Forward::memory_bytes(const ModelConfig& c, const KvLayout& layout, int threads,
                             const PassLimits& limits) {
  const int64_t q_size = c.num_heads * c.head_dim;
  const int64_t kv_size = c.num_kv_heads * c.head_dim;
  size_t bytes = 0;
  // The buffers of Impl, in its order.
  for (const int64_t cols :
       {c.hidden_size, c.hidden_size, q_size, kv_size, kv_size, q_size, c.intermediate_size,
        c.intermediate_size, c.hidden_size, c.head_dim / 2, c.head_dim / 2}) {
    bytes += RowBuffer::bytes(limits.rows, cols);
  }
  bytes += RowBuffer::bytes(limits.logit_rows, c.vocab_size, 0);
  bytes += Activations::bytes(limits.rows, most_inputs(c), kAnyForms);
  bytes += attention_bytes(c, layout, threads, limits.rows, limits.tokens);
  const int64_t scratch_blocks = limits.draft_spans * blocks_for(c.block_size);
  bytes += static_cast<size_t>(scratch_blocks) * scratch_layout_of(layout).block_bytes();
  return bytes;
}

const Model& Forward::model() const { return impl_->model; }
const KvLayout& Forward::layout() const { return impl_->layout; }
int64_t Forward::max_rows() const { return impl_->max_rows; }
ComputeContext Forward::context() const { return impl_->context; }

Logits Forward::run(std::span<const Span> spans) {
  FpStateGuard guard;  // the caller's thread does some rows by itself
  Impl& f = *impl_;
  f.place_rows(spans);
  f.embed();
  for (int64_t layer = 0; layer < f.c.num_layers; ++layer) {
    f.attend(layer);
    f.feed_forward(f.model.layers[static_cast<size_t>(layer)]);
    if (layer == f.traced_layer) f.copy_trace();
  }
  f.project_logits();
  return Logits(f.span_logits);
}

void Forward::trace_layer(int64_t layer, float* out) {
  impl_->traced_layer = layer;
  impl_->trace = out;
}

KvLayout kv_layout(const ModelConfig& config, KvType key_type, KvType value_type) {
  return {config.num_layers, config.num_kv_heads, config.head_dim, key_type, value_type};
}

}  // namespace orthrus
