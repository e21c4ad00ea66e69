#include "engine/perplexity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/error.h"
#include "cache/block_pool.h"
#include "decode/row_softmax.h"
#include "kernels/row_ops.h"

namespace orthrus {
namespace {

/// Rows a pass: enough to read the weights seldom, few enough that their logits stay small.
constexpr int64_t kPassRows = 128;

/// One model with a cache of its own, run over a chunk pass by pass.
class ChunkRunner {
 public:
  ChunkRunner(const Model& model, ComputeContext context, KvType type, int64_t chunk)
      : pool_(kv_layout(model.config, type, type), blocks_for(chunk)),
        table_(pool_),
        forward_(model, pool_.layout(), context, std::min(chunk, kPassRows)) {
    table_.reserve(chunk);
  }

  void restart() { table_.set_length(0); }

  /// Logits [tokens, vocab] of the next tokens of the chunk.
  std::span<const float> run(std::span<const int32_t> tokens) {
    const auto count = static_cast<int64_t>(tokens.size());
    const Span span{&table_, View::kAr, tokens, table_.length(), 0, count};
    const auto logits = forward_.run(span);
    table_.set_length(table_.length() + count);
    return logits;
  }

 private:
  BlockPool pool_;
  BlockTable table_;
  Forward forward_;
};

/// What one row says about the token that follows.
struct RowScore {
  double nll = 0;
  double reference_nll = 0;
  double kl = 0;
  bool same_top = true;
  bool finite = true;
};

/// `reference`: empty where there is none.
RowScore score(const RowOps& ops, std::span<const float> logits, std::span<const float> reference,
               int32_t next, std::vector<float>& weights) {
  RowScore result;
  const RowSoftmax model(ops, logits, weights);
  result.finite = model.top >= 0;
  if (!result.finite) return result;
  result.nll = -model.log_probability(next);
  if (reference.empty()) return result;
  const RowSoftmax truth(ops, reference, weights);
  result.finite = truth.top >= 0;
  if (!result.finite) return result;
  result.reference_nll = -truth.log_probability(next);
  result.same_top = truth.top == model.top;
  double kl = 0;  // sum p_ref (log p_ref - log p_model); weights holds exp(ref - max)
  for (size_t i = 0; i < logits.size(); ++i) {
    const auto p = static_cast<double>(weights[i]);
    kl += p * (static_cast<double>(reference[i]) - static_cast<double>(logits[i]));
  }
  result.kl = std::max(0.0, kl / truth.sum - truth.log_sum + model.log_sum);
  return result;
}

/// Adds rows up, in order: the sums do not depend on the number of threads.
class Totals {
 public:
  void add(const RowScore& row) {
    ++count_;
    nll_ += row.nll;
    nll_squared_ += row.nll * row.nll;
    reference_nll_ += row.reference_nll;
    kl_ += row.kl;
    kl_max_ = std::max(kl_max_, row.kl);
    same_top_ += row.same_top;
  }
  void fill(PerplexityResult& result, bool with_reference) const {
    const auto n = static_cast<double>(count_);
    result.scored_tokens = count_;
    result.mean_nll = nll_ / n;
    const double variance = std::max(0.0, nll_squared_ / n - result.mean_nll * result.mean_nll);
    result.standard_error = std::sqrt(variance / n);
    result.perplexity = std::exp(result.mean_nll);
    if (!with_reference) return;
    result.reference_perplexity = std::exp(reference_nll_ / n);
    result.kl_mean = kl_ / n;
    result.kl_max = kl_max_;
    result.top1_agreement = static_cast<double>(same_top_) / n;
  }

 private:
  int64_t count_ = 0;
  int64_t same_top_ = 0;
  double nll_ = 0, nll_squared_ = 0, reference_nll_ = 0, kl_ = 0, kl_max_ = 0;
};

class PerplexityRun {
 public:
  PerplexityRun(const Model& model, ComputeContext context, const PerplexityOptions& options,
                int64_t chunk)
      : context_(context),
        vocab_(model.config.vocab_size),
        runner_(model, context, options.kv_type, chunk),
        weights_(static_cast<size_t>(context.pool.size()),
                 std::vector<float>(static_cast<size_t>(vocab_))),
        scores_(static_cast<size_t>(std::min(chunk, kPassRows))) {
    if (options.reference) {
      reference_ = std::make_unique<ChunkRunner>(*options.reference, context, KvType::kF32, chunk);
    }
  }

  void chunk(std::span<const int32_t> tokens, Totals& totals) {
    runner_.restart();
    if (reference_) reference_->restart();
    const auto scored = static_cast<int64_t>(tokens.size()) - 1;
    for (int64_t begin = 0; begin < scored; begin += kPassRows) {
      const int64_t count = std::min(kPassRows, scored - begin);
      const auto at = static_cast<size_t>(begin);
      pass(tokens.subspan(at, static_cast<size_t>(count)), tokens.subspan(at + 1), totals);
    }
  }

 private:
  void pass(std::span<const int32_t> tokens, std::span<const int32_t> next, Totals& totals) {
    const auto count = static_cast<int64_t>(tokens.size());
    const std::span<const float> logits = runner_.run(tokens);
    const std::span<const float> truth =
        reference_ ? reference_->run(tokens) : std::span<const float>();
    const auto row = [&](std::span<const float> rows, int64_t i) {
      return rows.empty()
                 ? rows
                 : rows.subspan(static_cast<size_t>(i * vocab_), static_cast<size_t>(vocab_));
    };
    const RowOps& ops = row_ops(context_.isa);
    const int threads = context_.pool.size();
    context_.pool.run([&](int thread) {
      for (int64_t i = thread; i < count; i += threads) {
        scores_[static_cast<size_t>(i)] =
            score(ops, row(logits, i), row(truth, i), next[static_cast<size_t>(i)],
                  weights_[static_cast<size_t>(thread)]);
      }
    });
    for (int64_t i = 0; i < count; ++i) {
      const RowScore& scored = scores_[static_cast<size_t>(i)];
      if (!scored.finite) fail("perplexity: the model's logits are not finite");
      totals.add(scored);
    }
  }

  ComputeContext context_;
  int64_t vocab_;
  ChunkRunner runner_;
  std::unique_ptr<ChunkRunner> reference_;
  std::vector<std::vector<float>> weights_;  // [vocab] a thread
  std::vector<RowScore> scores_;             // [rows of a pass]
};

}  // namespace

PerplexityResult perplexity(const Model& model, ComputeContext context,
                            std::span<const int32_t> tokens, const PerplexityOptions& options) {
  const auto size = static_cast<int64_t>(tokens.size());
  if (size < 2) fail("perplexity: the text has {} tokens, expected at least 2", size);
  if (options.chunk < 2) fail_usage("the chunk is {} tokens, expected at least 2", options.chunk);
  const int64_t limit = model.config.max_position_embeddings;
  if (options.chunk > limit) {
    fail_usage("the chunk is {} tokens, but the model's context holds {}", options.chunk, limit);
  }
  const int64_t chunk = std::min(options.chunk, size);
  // A last chunk of one token would have nothing to score.
  int64_t chunks = (size + chunk - 1) / chunk;
  if (size % chunk == 1) --chunks;
  if (options.max_chunks > 0) chunks = std::min(chunks, options.max_chunks);
  PerplexityRun run(model, context, options, chunk);
  Totals totals;
  for (int64_t i = 0; i < chunks; ++i) {
    const auto begin = static_cast<size_t>(i * chunk);
    run.chunk(tokens.subspan(begin, std::min(static_cast<size_t>(chunk), tokens.size() - begin)),
              totals);
    if (options.progress) {
      options.progress(static_cast<double>(i + 1) / static_cast<double>(chunks));
    }
  }
  PerplexityResult result;
  result.chunks = chunks;
  totals.fill(result, options.reference != nullptr);
  return result;
}

}  // namespace orthrus
