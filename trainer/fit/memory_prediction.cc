#include "trainer/fit/memory_prediction.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string_view>

#include "trainer/fit/simulate.h"

namespace orthrus::train {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kBfloat16 = 2;

/// Numbers of one layer, in the symbols of the model's shapes.
struct LayerSizes {
  explicit LayerSizes(const ModelConfig& c)
      : hidden(c.hidden_size),
        q(c.num_heads * c.head_dim),
        kv(c.num_kv_heads * c.head_dim),
        wide(c.intermediate_size),
        view((q + 2 * kv) * hidden + hidden * q + (c.qk_norm ? 2 * c.head_dim : 0)),
        frozen(view + 3 * wide * hidden + 2 * hidden) {}
  int64_t hidden, q, kv, wide;
  int64_t view;    // weights of one view's attention
  int64_t frozen;  // weights without the diffusion view's
};

/// Floats a row that the diffusion view keeps in a layer for its backward pass.
int64_t kept_floats(const ModelConfig& c, const LayerSizes& s) {
  const int64_t norms = 2 * s.hidden + (c.qk_norm ? s.q + s.kv : 0);
  const int64_t products = s.hidden + s.q;       // inputs of the trained ones
  const int64_t attention = 2 * s.q + 3 * s.kv;  // the projections, and q and k once rotated
  return norms + products + attention + 2 * s.wide;
}

/// What the allocator loses between tensors that come and go, measured.
constexpr double kAllocatorLoss = 0.15;

}  // namespace

int64_t MemoryPrediction::total() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0},
                         [](int64_t sum, const Part& part) { return sum + part.bytes; });
}

std::string MemoryPrediction::text() const {
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); };
  std::string list;
  for (const Part& part : parts) {
    list += fmt::format("{}{} {:.0f}", list.empty() ? "" : ", ", part.name, mib(part.bytes));
  }
  return fmt::format("memory at the peak: about {:.0f} MiB ({})", mib(total()), list);
}

MemoryPrediction predict_memory(const ModelConfig& c, const MemoryQuestion& question) {
  const LayerSizes s(c);
  const int64_t embedding = c.vocab_size * c.hidden_size;
  const int64_t frozen =
      c.num_layers * s.frozen + embedding * (c.tie_word_embeddings ? 1 : 2) + c.hidden_size;
  const int64_t trained = c.num_layers * s.view + c.hidden_size;
  const bool muon = question.student.optimizer == Optimizer::kMuon;
  const int64_t tokens = question.row.row_tokens;
  // An anchor has a successor in its row, and no row has an anchor twice.
  const int64_t rows = std::min(question.row.row_blocks, tokens - 1) * question.row.block_size;
  const auto cache = [&](int64_t n) { return n * (c.num_layers * 2 * s.kv + 2 * s.hidden); };
  // What a layer works on for a moment, forward or backward, of whichever view is wider.
  const auto moment = [&](int64_t most_rows) { return most_rows * (4 * s.wide + 4 * s.hidden); };
  const int64_t logits = std::min(question.student.loss.chunk_floats, rows * c.vocab_size);
  const auto kept = static_cast<double>(kFloat * rows * c.num_layers * kept_floats(c, s));
  // The rounded forms: every weight as the forward pass reads it; as the backward pass does, those
  // that gradients pass through.
  const int64_t head = embedding;
  const int64_t forward = c.num_layers * s.frozen + head + trained;
  const int64_t backward = c.num_layers * 3 * s.wide * s.hidden + head + trained;
  const bool rounded = question.precision == Precision::kBfloat16;
  const int64_t training = kFloat * (cache(tokens) + moment(std::max(rows, tokens)) + 3 * logits) +
                           static_cast<int64_t>((1 + kAllocatorLoss) * kept);
  const int64_t held_out = question.held_out_tokens;
  const int64_t drafts = kSimulatedBlocks * question.row.block_size;
  // Of a whole document the AR view's attention has copies of its own: twice the work, measured.
  const int64_t evaluation = kFloat * (cache(held_out) + 2 * moment(std::max(held_out, drafts)));
  MemoryPrediction prediction{
      {{"program and data", question.resident},
       {"base model", kFloat * frozen},
       {"its form in bfloat16", rounded ? kBfloat16 * (forward + backward) : 0},
       {"mapped file", question.file},
       {"diffusion view", kFloat * trained},
       {"gradients and moments", (muon ? 2 : 3) * kFloat * trained},
       {"AR keys and values", kFloat * cache(tokens)},
       {"kept for the backward pass", static_cast<int64_t>((1 + kAllocatorLoss) * kept)},
       {"one layer's work", kFloat * moment(std::max(rows, tokens))},
       {"logits", 3 * kFloat * logits}}};
  if (evaluation > training) {
    prediction.parts.push_back({"more for the held-out evaluation", evaluation - training});
  }
  return prediction;
}

int64_t mapped_memory(const TensorSource& tensors) {
  constexpr size_t kPagesAround = size_t{1} << 16;  // that Linux maps with one that is touched
  size_t total = 0;
  for (const TensorInfo& tensor : tensors.tensors()) {
    total += std::min(tensor.data.size(), 2 * kPagesAround);
  }
  return static_cast<int64_t>(total);
}

int64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

int64_t peak_memory() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view kName = "VmHWM:";
    if (line.starts_with(kName)) return std::stoll(line.substr(kName.size())) * 1024;
  }
  return 0;
}

}  // namespace orthrus::train
