#include "trainer/fit/flops.h"

#include <algorithm>

namespace orthrus::train {

double training_flops(const ModelConfig& c, const PlannedRow& row, int64_t block_size) {
  const int64_t qkv = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim * c.hidden_size;
  const int64_t o = c.hidden_size * c.num_heads * c.head_dim;
  const int64_t mlp = 3 * c.intermediate_size * c.hidden_size;
  const int64_t trained = c.num_layers * (qkv + o), all = trained + c.num_layers * mlp;

  int64_t targets = 0, imitated = 0, end = 0;  // AR rows, those of overlapping blocks once
  for (const TrainBlock& b : row.blocks) {
    targets += b.targets;
    const int64_t last = b.block.anchor + b.targets;
    imitated += std::max<int64_t>(0, last - std::max(end, b.block.anchor));
    end = std::max(end, last);
  }
  const auto tokens = static_cast<double>(row.row.tokens.size());
  const auto block_rows = static_cast<double>(row.blocks.size()) * static_cast<double>(block_size);
  const auto head = static_cast<double>(c.vocab_size * c.hidden_size);
  const double head_rows = static_cast<double>(imitated) + 2 * static_cast<double>(targets);
  return 2 * ((tokens + 2 * block_rows) * static_cast<double>(all) +
              block_rows * static_cast<double>(trained) + head_rows * head);
}

PlannedRow full_row(const RowPlanOptions& options) {
  const int64_t last = options.row_tokens - options.block_size;  // anchor of the last whole block
  const int64_t blocks = std::min(options.row_blocks, last + 1);
  const int64_t targets = options.block_size - (options.train_last ? 0 : 1);
  PlannedRow planned;
  planned.row.tokens.resize(static_cast<size_t>(options.row_tokens));
  planned.row.documents = {{0, options.row_tokens}};
  for (int64_t i = 0; i < blocks; ++i) planned.blocks.push_back({{i * last / blocks, 0}, targets});
  return planned;
}

}  // namespace orthrus::train
