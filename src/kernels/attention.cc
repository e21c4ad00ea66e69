#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "base/error.h"
#include "kernels/attention_kernel.h"

namespace orthrus {
namespace {

// Rows of one band go through a chunk together, so that its keys and values come from memory once.
constexpr int64_t kBandRows = 32;

// Where (band, kv head) would make few or uneven tasks, every (band, kv head, chunk) is one, up to
// so many bytes of partial results. Otherwise the results stay in a thread's scratch.
constexpr int64_t kMaxPartialBytes = int64_t{4} << 20;

// Consecutive rows over the same blocks. Chunks [0, cached_chunks) are of the sequence, the
// next own_chunks of the own block; a row may use fewer of either.
struct Band {
  int64_t first_row, rows;
  int64_t cached_chunks, own_chunks;
  int64_t first_task;
  int64_t first_partial;

  int64_t chunks() const { return cached_chunks + own_chunks; }
};

size_t align(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Tasks that keep so many threads busy to the end.
int64_t enough_tasks(int threads) { return int64_t{4} * threads; }

// Floats of a group's copied queries, the first in a thread's scratch.
int64_t query_floats(const KvLayout& layout) { return kMaxGroupQueries * layout.head_dim; }

// Floats of a thread's scratch: those, a band's partial results and one group's.
int64_t scratch_floats(const KvLayout& layout, int64_t group_heads) {
  return query_floats(layout) +
         (kBandRows * group_heads + kMaxGroupQueries) * partial_floats(layout.head_dim);
}

int64_t chunks_of(int64_t tokens) { return (tokens + kChunkTokens - 1) / kChunkTokens; }

const AttentionKernels& kernels_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAvx512Bf16) return kAttentionAvx512Bf16;
  if (isa == Isa::kAvx512) return kAttentionAvx512;
  if (common_isa(isa) == Isa::kAvx2) return kAttentionAvx2;
#elif defined(__aarch64__)
  if (isa == Isa::kNeon) return kAttentionNeon;
#endif
  return kAttentionPortable;
}

bool same_keys(const AttentionRow& a, const AttentionRow& b) {
  return a.blocks.data() == b.blocks.data() && a.own_blocks.data() == b.own_blocks.data();
}

// One call of attention(): the plan (bands, where partial results go) and the steps.
class AttentionCall {
 public:
  AttentionCall(const ComputeContext& context, const KvLayout& layout, int64_t layer, int64_t heads,
                float scale, std::span<const AttentionRow> rows)
      : pool_(context.pool),
        kernels_(kernels_for(context.isa)),
        layout_(layout),
        layer_(layer),
        heads_(heads),
        group_heads_(heads / layout.kv_heads),
        scale_(scale),
        rows_(rows),
        partial_floats_(partial_floats(layout.head_dim)) {}

  void run(AttentionWorkspace& workspace) {
    plan(workspace);
    run_tasks();
    if (split_chunks_) combine();
  }

 private:
  void plan(AttentionWorkspace& workspace) {
    const size_t band_bytes = align(rows_.size() * sizeof(Band));
    scratch_floats_ = scratch_floats(layout_, group_heads_);
    const size_t scratch_bytes =
        static_cast<size_t>(pool_.size() * scratch_floats_) * sizeof(float);
    // The bands say how many partial results there are, and growing moves the workspace: so they
    // are found twice where it has to grow.
    const size_t base = band_bytes + scratch_bytes;
    find_bands(reinterpret_cast<Band*>(workspace.reserve(base)));
    const size_t partial_bytes =
        split_chunks_ ? static_cast<size_t>(partials_count_ * partial_floats_) * sizeof(float) : 0;
    std::byte* memory = workspace.reserve(base + partial_bytes);
    if (reinterpret_cast<Band*>(memory) != bands_.data()) {
      find_bands(reinterpret_cast<Band*>(memory));
    }
    scratch_ = reinterpret_cast<float*>(memory + band_bytes);
    partials_ = reinterpret_cast<float*>(memory + base);
  }

  void find_bands(Band* bands) {
    size_t count = 0;
    int64_t most_chunks = 0;
    partials_count_ = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      const AttentionRow& row = rows_[i];
      const bool joins =
          count > 0 && bands[count - 1].rows < kBandRows && same_keys(rows_[i - 1], row);
      if (!joins) bands[count++] = {static_cast<int64_t>(i), 0, 0, 0, 0, 0};
      Band& band = bands[count - 1];
      ++band.rows;
      band.cached_chunks = std::max(band.cached_chunks, chunks_of(row.length));
      band.own_chunks = std::max(band.own_chunks, chunks_of(row.own_length));
      most_chunks = std::max(most_chunks, band.chunks());
    }
    bands_ = {bands, count};
    int64_t most_work = 0, all_work = 0;
    for (Band& band : bands_) {
      band.first_partial = partials_count_;
      partials_count_ += band.rows * heads_ * band.chunks();
      most_work = std::max(most_work, band.rows * band.chunks());
      all_work += band.rows * band.chunks();
    }
    const int64_t bytes = partials_count_ * partial_floats_ * static_cast<int64_t>(sizeof(float));
    const int64_t whole_tasks = static_cast<int64_t>(count) * layout_.kv_heads;
    // A long task among them would keep one thread while the others wait.
    const bool uneven = 8 * pool_.size() * most_work > layout_.kv_heads * all_work;
    split_chunks_ = most_chunks > 1 && ((uneven && bytes <= kMaxPartialBytes) ||
                                        whole_tasks < enough_tasks(pool_.size()));
    // The longest rows of a prefill are its last: they go first, so that threads end together.
    if (!split_chunks_) std::reverse(bands_.begin(), bands_.end());
    task_count_ = 0;
    for (Band& band : bands_) {
      band.first_task = task_count_;
      task_count_ += layout_.kv_heads * (split_chunks_ ? band.chunks() : 1);
    }
  }

  void run_tasks() {
    std::atomic<int64_t> next{0};
    pool_.run([&](int thread) {
      float* scratch = scratch_ + thread * scratch_floats_;
      // A thread takes its next task before it does the one at hand, to fetch ahead.
      const auto take = [&](const Task& after) {
        return task_at(next.fetch_add(1, std::memory_order_relaxed), after.band);
      };
      for (Task task = take({}); task.band < bands_.size();) {
        const Task following = take(task);
        const std::byte* const ahead = first_keys(following);
        if (split_chunks_) {
          run_chunk(bands_[task.band], task.kv_head, task.chunk, scratch, ahead);
        } else {
          run_band(bands_[task.band], task.kv_head, scratch, ahead);
        }
        task = following;
      }
    });
  }

  struct Task {
    size_t band = 0;  // bands_.size(): there is no such task
    int64_t kv_head = 0;
    int64_t chunk = 0;  // the first of the task's
  };

  // Task `index`; `band` is that of one before it.
  Task task_at(int64_t index, size_t band) const {
    if (index >= task_count_) return {bands_.size()};
    while (band + 1 < bands_.size() && bands_[band + 1].first_task <= index) ++band;
    index -= bands_[band].first_task;
    return {band, index % layout_.kv_heads, index / layout_.kv_heads};
  }

  const std::byte* first_keys(const Task& task) const {
    if (task.band == bands_.size()) return nullptr;
    return keys_at(bands_[task.band], task.kv_head, task.chunk, 0);
  }

  float* partial_at(const Band& band, int64_t row, int64_t head, int64_t chunk) const {
    const int64_t row_head = (row - band.first_row) * heads_ + head;
    return partials_ + (band.first_partial + row_head * band.chunks() + chunk) * partial_floats_;
  }

  // The partial results of one chunk and kv head, kept for combine().
  void run_chunk(const Band& band, int64_t kv_head, int64_t chunk, float* scratch,
                 const std::byte* next) const {
    for_groups(
        band, kv_head, chunk, scratch, next,
        [&](int, int64_t row, int64_t head) { return partial_at(band, row, head, chunk); },
        [](int64_t, int64_t, const float*) {});
  }

  // All chunks of one kv head in order, each merged at once; writes the rows' outputs.
  void run_band(const Band& band, int64_t kv_head, float* scratch, const std::byte* next) const {
    float* const states = scratch + query_floats(layout_);
    float* const group_partials = states + kBandRows * group_heads_ * partial_floats_;
    auto state_of = [&](int64_t row, int64_t head) {
      const int64_t index = (row - band.first_row) * group_heads_ + head - kv_head * group_heads_;
      return states + index * partial_floats_;
    };
    for_queries(band, kv_head, [&](int64_t row, int64_t head) {
      kernels_.clear(state_of(row, head), layout_.head_dim);
    });
    for (int64_t chunk = 0; chunk < band.chunks(); ++chunk) {
      const bool last = chunk + 1 == band.chunks();
      for_groups(
          band, kv_head, chunk, scratch, last ? next : keys_at(band, kv_head, chunk + 1, 0),
          [&](int q, int64_t, int64_t) { return group_partials + q * partial_floats_; },
          [&](int64_t row, int64_t head, const float* partial) {
            kernels_.merge(state_of(row, head), partial, layout_.head_dim);
          });
    }
    for_queries(band, kv_head, [&](int64_t row, int64_t head) {
      kernels_.finish(state_of(row, head), layout_.head_dim, output(row, head));
    });
  }

  // Merges the kept partial results of every row and head in chunk order.
  void combine() {
    const int64_t band_count = static_cast<int64_t>(bands_.size());
    std::atomic<int64_t> next{0};
    pool_.run([&](int thread) {
      float* state = scratch_ + thread * scratch_floats_;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < band_count * heads_;) {
        const Band& band = bands_[static_cast<size_t>(i / heads_)];
        const int64_t head = i % heads_;
        for (int64_t row = band.first_row; row < band.first_row + band.rows; ++row) {
          kernels_.clear(state, layout_.head_dim);
          for (int64_t chunk = 0; chunk < band.chunks(); ++chunk) {
            if (tokens_in(band, row, chunk) == 0) continue;
            kernels_.merge(state, partial_at(band, row, head, chunk), layout_.head_dim);
          }
          kernels_.finish(state, layout_.head_dim, output(row, head));
        }
      }
    });
  }

  // How many tokens of the chunk the row attends to.
  int tokens_in(const Band& band, int64_t row, int64_t chunk) const {
    const AttentionRow& r = rows_[static_cast<size_t>(row)];
    const bool own = chunk >= band.cached_chunks;
    const int64_t begin = (own ? chunk - band.cached_chunks : chunk) * kChunkTokens;
    const int64_t length = own ? r.own_length : r.length;
    return static_cast<int>(std::clamp<int64_t>(length - begin, 0, kChunkTokens));
  }

  float* output(int64_t row, int64_t head) const {
    return rows_[static_cast<size_t>(row)].out + head * layout_.head_dim;
  }

  template <typename Fn>
  void for_queries(const Band& band, int64_t kv_head, Fn fn) const {
    for (int64_t row = band.first_row; row < band.first_row + band.rows; ++row) {
      for (int64_t h = 0; h < group_heads_; ++h) fn(row, kv_head * group_heads_ + h);
    }
  }

  // The keys of every head in a layer of a block of the chunk.
  const std::byte* layer_at(const Band& band, int64_t chunk, int64_t block) const {
    const AttentionRow& row = rows_[static_cast<size_t>(band.first_row)];
    const bool own = chunk >= band.cached_chunks;
    const int64_t first = (own ? chunk - band.cached_chunks : chunk) * kChunkBlocks;
    const std::byte* const begin = (own ? row.own_blocks : row.blocks).data()[first + block];
    return own ? begin : begin + static_cast<size_t>(layer_) * layout_.layer_bytes();
  }
  const std::byte* keys_at(const Band& band, int64_t kv_head, int64_t chunk, int64_t block) const {
    return layer_at(band, chunk, block) + static_cast<size_t>(kv_head) * layout_.key_bytes();
  }
  const std::byte* values_at(const Band& band, int64_t kv_head, int64_t chunk,
                             int64_t block) const {
    return layer_at(band, chunk, block) +
           static_cast<size_t>(layout_.kv_heads) * layout_.key_bytes() +
           static_cast<size_t>(kv_head) * layout_.value_bytes();
  }

  // Runs the chunk kernel over the band's queries that attend to the chunk, in groups. `next` is
  // what the thread reads after it. target(q, row, head) says where the partial of the group's
  // query q goes; done(row, head, partial) is called after it is there.
  template <typename Target, typename Done>
  void for_groups(const Band& band, int64_t kv_head, int64_t chunk, float* scratch,
                  const std::byte* next, Target target, Done done) const {
    std::array<int64_t, kBandRows> active;
    int64_t active_rows = 0;
    int most = 0;
    for (int64_t row = band.first_row; row < band.first_row + band.rows; ++row) {
      const int tokens = tokens_in(band, row, chunk);
      if (tokens > 0) active[static_cast<size_t>(active_rows++)] = row;
      most = std::max(most, tokens);
    }
    ChunkGroup group;
    group.head_dim = layout_.head_dim;
    group.scale = scale_;
    group.query_copy = scratch;
    group.next = next;
    group.blocks = static_cast<int>((most + kKvBlockTokens - 1) / kKvBlockTokens);
    for (int i = 0; i < group.blocks; ++i) {
      group.keys[i] = keys_at(band, kv_head, chunk, i);
      group.values[i] = values_at(band, kv_head, chunk, i);
    }
    const int64_t queries = active_rows * group_heads_;
    std::array<std::pair<int64_t, int64_t>, kMaxGroupQueries> ids;  // row, head
    for (int64_t begin = 0; begin < queries; begin += kernels_.max_queries) {
      group.fetch = begin == 0;
      group.count = static_cast<int>(std::min<int64_t>(queries - begin, kernels_.max_queries));
      for (int q = 0; q < group.count; ++q) {
        const int64_t row = active[static_cast<size_t>((begin + q) / group_heads_)];
        const int64_t head = kv_head * group_heads_ + (begin + q) % group_heads_;
        ids[static_cast<size_t>(q)] = {row, head};
        group.queries[q] = rows_[static_cast<size_t>(row)].query + head * layout_.head_dim;
        group.tokens[q] = tokens_in(band, row, chunk);
        group.partials[q] = target(q, row, head);
      }
      kernels_.chunk(group, layout_.key_type, layout_.value_type);
      for (int q = 0; q < group.count; ++q) {
        done(ids[static_cast<size_t>(q)].first, ids[static_cast<size_t>(q)].second,
             group.partials[q]);
      }
    }
  }

  ThreadPool& pool_;
  const AttentionKernels& kernels_;
  const KvLayout& layout_;
  const int64_t layer_, heads_, group_heads_;
  const float scale_;
  const std::span<const AttentionRow> rows_;
  const int64_t partial_floats_;
  std::span<Band> bands_;
  bool split_chunks_ = false;
  int64_t task_count_ = 0;
  int64_t partials_count_ = 0;
  int64_t scratch_floats_ = 0;
  float* scratch_ = nullptr;   // [threads, scratch_floats_]
  float* partials_ = nullptr;  // [partials_count_, partial_floats_] where split
};

}  // namespace

void attention(const ComputeContext& context, const KvLayout& layout, int64_t layer, int64_t heads,
               float scale, std::span<const AttentionRow> rows, AttentionWorkspace& workspace) {
  ORTHRUS_CHECK(layout.kv_heads > 0 && heads % layout.kv_heads == 0);
  ORTHRUS_CHECK(layout.head_dim > 0 && layout.head_dim % 16 == 0);
  if (rows.empty()) return;
  AttentionCall(context, layout, layer, heads, scale, rows).run(workspace);
}

size_t attention_workspace_bytes(int threads, const KvLayout& layout, int64_t heads, int64_t rows,
                                 int64_t tokens, int64_t own_tokens) {
  const int64_t floats = partial_floats(layout.head_dim);
  const int64_t scratch = threads * scratch_floats(layout, heads / layout.kv_heads);
  // Split into chunks are few partial results, or those of few bands: one less than are enough.
  const int64_t row_partials = heads * (chunks_of(tokens) + chunks_of(own_tokens)) * floats;
  const int64_t few_bands = (enough_tasks(threads) - 1) / layout.kv_heads;
  const auto all = static_cast<int64_t>(sizeof(float)) * rows * row_partials;
  const auto few =
      static_cast<int64_t>(sizeof(float)) * std::min(rows, few_bands * kBandRows) * row_partials;
  return align(static_cast<size_t>(rows) * sizeof(Band)) +
         static_cast<size_t>(scratch) * sizeof(float) +
         static_cast<size_t>(std::max(std::min(all, kMaxPartialBytes), few));
}

}  // namespace orthrus
