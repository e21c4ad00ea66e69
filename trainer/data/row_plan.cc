#include "trainer/data/row_plan.h"

#include <algorithm>
#include <utility>

#include "base/counter_rng.h"
#include "base/error.h"

namespace orthrus::train {
namespace {

/// A stream of random numbers below given bounds, a pure function of (seed, purpose, a, b).
class Stream {
 public:
  enum class Purpose : uint32_t { kOrder = 1, kAnchors = 2 };
  Stream(uint64_t seed, Purpose purpose, int64_t a, int64_t b)
      : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)},
        counter_{0, static_cast<uint32_t>(purpose), static_cast<uint32_t>(a),
                 static_cast<uint32_t>(b)} {}
  /// Below `bound`, which is far below 2^32.
  size_t below(size_t bound) {
    const auto bits = philox4x32(counter_, key_);
    ++counter_[0];
    const uint64_t wide = uint64_t{bits[0]} << 32 | bits[1];
    return static_cast<size_t>((static_cast<unsigned __int128>(wide) * bound) >> 64);
  }

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
};

/// Puts `count` of the values, drawn at random, in front.
template <typename T>
void draw(std::vector<T>& values, size_t count, Stream stream) {
  for (size_t i = 0; i < count; ++i) {
    std::swap(values[i], values[i + stream.below(values.size() - i)]);
  }
}

/// Appends every anchor of a document that lies at `begin` in the row and is cut to `length`.
void add_candidates(const Document& d, int64_t begin, int64_t length, int64_t index,
                    int64_t most_targets, std::vector<TrainBlock>& out) {
  for (const AnswerSpan& span : d.answers) {
    const int64_t end = std::min(span.end, length);
    for (int64_t i = span.begin; i + 1 < end; ++i) {
      out.push_back({{begin + i, index}, std::min(most_targets, end - 1 - i)});
    }
  }
}

}  // namespace

RowPlan::RowPlan(const Shard& data, const RowPlanOptions& options)
    : data_(data), options_(options) {
  ORTHRUS_CHECK(options.row_tokens > 1 && options.row_blocks > 0 && options.block_size > 1);
  for (size_t i = 0; i < data.documents.size(); ++i) {
    std::vector<TrainBlock> candidates;
    add_candidates(data.documents[i], 0, length(i), 0, 1, candidates);
    if (!candidates.empty()) usable_.push_back(static_cast<uint32_t>(i));
  }
  if (usable_.empty()) {
    fail("no document has an answer of two tokens within {} tokens", options.row_tokens);
  }
  begin_epoch(0);
}

int64_t RowPlan::length(size_t document) const {
  return std::min(static_cast<int64_t>(data_.documents[document].tokens.size()),
                  options_.row_tokens);
}

void RowPlan::begin_epoch(int64_t epoch) {
  state_ = {epoch, 0};
  order_ = usable_;
  draw(order_, order_.size(), Stream(options_.seed, Stream::Purpose::kOrder, epoch, 0));
}

void RowPlan::restore(const PlanState& state) {
  begin_epoch(state.epoch);
  if (state.next < 0 || state.next > static_cast<int64_t>(order_.size())) {
    fail("the checkpoint stands at document {} of {}: other data than it was made with", state.next,
         order_.size());
  }
  state_ = state;
}

PlannedRow RowPlan::next() {
  if (state_.next == static_cast<int64_t>(order_.size())) begin_epoch(state_.epoch + 1);
  const PlanState start = state_;
  const int64_t most_targets = options_.block_size - (options_.train_last ? 0 : 1);
  PlannedRow planned;
  PackedRow& row = planned.row;
  while (true) {
    if (state_.next == static_cast<int64_t>(order_.size())) break;
    const size_t document = order_[static_cast<size_t>(state_.next)];
    const int64_t begin = static_cast<int64_t>(row.tokens.size());
    const int64_t size = length(document);
    if (begin + size > options_.row_tokens) break;
    const Document& d = data_.documents[document];
    row.tokens.insert(row.tokens.end(), d.tokens.begin(), d.tokens.begin() + size);
    add_candidates(d, begin, size, static_cast<int64_t>(row.documents.size()), most_targets,
                   planned.blocks);
    row.documents.push_back({begin, begin + size});
    ++state_.next;
  }
  const size_t wanted = std::min(planned.blocks.size(), static_cast<size_t>(options_.row_blocks));
  draw(planned.blocks, wanted,
       Stream(options_.seed, Stream::Purpose::kAnchors, start.epoch, start.next));
  planned.blocks.resize(wanted);
  std::sort(
      planned.blocks.begin(), planned.blocks.end(),
      [](const TrainBlock& a, const TrainBlock& b) { return a.block.anchor < b.block.anchor; });
  return planned;
}

}  // namespace orthrus::train
