#include "trainer/fit/simulate.h"

#include <algorithm>
#include <numeric>

namespace orthrus::train {
namespace {

constexpr int64_t kLogitRows = 256;

/// Greedy drafts of the blocks at anchors [first, last): [last - first][block_size - 1].
std::vector<std::vector<int64_t>> all_drafts(const DualModel& model, const PackedRow& row,
                                             const ArPass& ar, int64_t first, int64_t last,
                                             int64_t block_size) {
  std::vector<std::vector<int64_t>> drafts;
  for (int64_t begin = first; begin < last; begin += kSimulatedBlocks) {
    std::vector<Block> blocks;
    for (int64_t a = begin; a < std::min(last, begin + kSimulatedBlocks); ++a) {
      blocks.push_back({a, 0});
    }
    const at::Tensor hidden = model.forward_diffusion(row, ar, blocks, block_size)
                                  .narrow(1, 0, block_size - 1)
                                  .reshape({-1, model.config().hidden_size});
    std::vector<at::Tensor> best;
    for (const at::Tensor& part : hidden.split(kLogitRows)) {
      best.push_back(model.logits(part).argmax(-1));
    }
    const at::Tensor ids = at::cat(best).to(at::kCPU).contiguous();
    const int64_t* id = ids.data_ptr<int64_t>();
    for (size_t b = 0; b < blocks.size(); ++b, id += block_size - 1) {
      drafts.emplace_back(id, id + block_size - 1);
    }
  }
  return drafts;
}

void simulate_answer(const std::vector<std::vector<int64_t>>& drafts, const PackedRow& row,
                     int64_t first, int64_t last, Simulation& out) {
  const auto run_at = [&](int64_t anchor) {
    const std::vector<int64_t>& d = drafts[static_cast<size_t>(anchor - first)];
    int64_t run = 0;
    while (run < static_cast<int64_t>(d.size()) && anchor + 1 + run < last &&
           d[static_cast<size_t>(run)] == row.tokens[static_cast<size_t>(anchor + 1 + run)]) {
      ++run;
    }
    return run;
  };
  for (int64_t anchor = first; anchor + 1 < last; ++anchor) {
    const std::vector<int64_t>& d = drafts[static_cast<size_t>(anchor - first)];
    for (size_t i = 0; i < d.size() && anchor + 1 + static_cast<int64_t>(i) < last; ++i) {
      ++out.rows[i];
      out.agreed[i] += d[i] == row.tokens[static_cast<size_t>(anchor + 1) + i];
    }
  }
  for (int64_t anchor = first; anchor + 1 < last;) {
    const int64_t accepted = run_at(anchor);
    ++out.cycles;
    out.accepted += accepted;
    anchor += accepted + 1;
  }
}

}  // namespace

double Simulation::tokens_per_cycle() const {
  return cycles == 0 ? 0 : 1.0 + static_cast<double>(accepted) / static_cast<double>(cycles);
}

double Simulation::mean() const {
  if (per_document.empty()) return 0;
  return std::accumulate(per_document.begin(), per_document.end(), 0.0) /
         static_cast<double>(per_document.size());
}

Simulation simulate_cycles(const DualModel& model, const std::vector<Document>& documents,
                           int64_t block_size) {
  const at::NoGradGuard no_grad;
  Simulation result;
  result.agreed.resize(static_cast<size_t>(block_size - 1));
  result.rows.resize(result.agreed.size());
  for (const Document& document : documents) {
    PackedRow row;
    const auto length = static_cast<int64_t>(document.tokens.size());
    row.tokens.assign(document.tokens.begin(), document.tokens.end());
    row.documents = {{0, length}};
    const ArPass ar = model.forward_ar(row);
    const int64_t cycles = result.cycles, accepted = result.accepted;
    for (const AnswerSpan& span : document.answers) {
      const int64_t last = std::min(span.end, length);
      if (span.begin + 1 >= last) continue;
      const auto drafts = all_drafts(model, row, ar, span.begin, last - 1, block_size);
      simulate_answer(drafts, row, span.begin, last, result);
    }
    if (result.cycles == cycles) continue;
    ++result.documents;
    result.per_document.push_back(1.0 + static_cast<double>(result.accepted - accepted) /
                                            static_cast<double>(result.cycles - cycles));
  }
  return result;
}

}  // namespace orthrus::train
