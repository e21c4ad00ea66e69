// Runs the hot loops once each on a fixed input, for instruction_counts.py: under callgrind, the
// instructions of every item go to a file of their own.
//   counted_kernels ISA

#include <valgrind/callgrind.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention.h"
#include "kernels/isa.h"
#include "kernels/matmul.h"
#include "kernels/row_ops.h"

namespace {

using namespace orthrus;

/// The first run binds symbols and touches memory; the second is counted.
void count(const std::string& item, const std::function<void()>& run) {
  run();
  CALLGRIND_ZERO_STATS;
  CALLGRIND_TOGGLE_COLLECT;
  run();
  CALLGRIND_TOGGLE_COLLECT;
  CALLGRIND_DUMP_STATS_AT(item.c_str());
}

std::vector<float> normal_values(size_t count) {
  std::mt19937 random(1);
  std::vector<float> values(count);
  for (float& v : values) v = std::normal_distribution<float>()(random);
  return values;
}

void count_matmuls(const ComputeContext& context) {
  constexpr int64_t kInputs = 512;
  constexpr int64_t kOutputs = 64;
  constexpr int64_t kMostRows = 32;
  const auto x = normal_values(kMostRows * kInputs);
  std::vector<float> out(kMostRows * kOutputs);
  for (TensorType type : {TensorType::kBF16, TensorType::kQ8_0, TensorType::kQ4_0,
                          TensorType::kQ4_K, TensorType::kQ6_K}) {
    // Zeros are as much work as any weights.
    const std::vector<std::byte> zeros(static_cast<size_t>(kOutputs) * row_bytes(type, kInputs));
    const PackedMatrix matrix =
        pack({.type = type, .data = zeros, .rows = kOutputs, .cols = kInputs}, WeightFormat::kAuto,
             context.pool);
    for (int64_t rows : {1, 4, 32}) {
      Activations activations;
      activations.set(context, x.data(), kInputs, rows, kInputs, activation_forms(matrix));
      const MatmulTask task{&matrix, 0, rows, out.data(), kOutputs};
      count("matmul " + std::string(traits(type).name) + " rows " + std::to_string(rows), [&] {
        matmul(context, activations, {&task, 1});
      });
    }
  }
  Activations activations;
  count("quantise row", [&] {
    activations.set(context, x.data(), kInputs, 1, kInputs, {.groups = true, .bf16 = true});
  });
}

void count_attention(const ComputeContext& context) {
  constexpr int64_t kTokens = 300;
  constexpr int64_t kHeads = 4;
  const KvLayout layout{.layers = 1, .kv_heads = 2, .head_dim = 64};
  const auto values = normal_values(static_cast<size_t>(kHeads * layout.head_dim));
  std::vector<std::unique_ptr<float[]>> memory;
  std::vector<std::byte*> blocks;
  for (int64_t token = 0; token < kTokens; ++token) {
    if (token % kKvBlockTokens == 0) {
      memory.push_back(std::make_unique<float[]>(layout.block_bytes() / sizeof(float)));
      blocks.push_back(reinterpret_cast<std::byte*>(memory.back().get()));
    }
    write_kv(layout, 0, blocks.back(), token % kKvBlockTokens, values.data(), values.data());
  }
  for (size_t count_of_rows : {1, 16}) {
    std::vector<float> out(count_of_rows * values.size());
    std::vector<AttentionRow> rows;
    for (size_t i = 0; i < count_of_rows; ++i) {
      rows.push_back({values.data(), out.data() + i * values.size(), blocks, kTokens, {}, 0});
    }
    AttentionWorkspace workspace;
    count("attention rows " + std::to_string(count_of_rows),
          [&] { attention(context, layout, 0, kHeads, 0.125f, rows, workspace); });
  }
}

void count_row_ops(const ComputeContext& context) {
  constexpr int64_t kValues = 1024;
  const auto x = normal_values(kValues);
  std::vector<float> out(kValues);
  const RowOps& ops = row_ops(context.isa);
  count("rms_norm", [&] { ops.rms_norm(x.data(), x.data(), 1e-6f, kValues, out.data()); });
  count("silu_mul", [&] { ops.silu_mul(x.data(), x.data(), kValues, out.data()); });
  count("exp_sum", [&] { ops.exp_sum(x.data(), 4.0f, 1.0f, kValues, out.data()); });
  count("argmax", [&] { ops.argmax(x.data(), kValues); });
}

}  // namespace

int main(int argc, char** argv) {
  for (Isa isa : kIsas) {
    if (argc != 2 || isa_name(isa) != argv[1]) continue;
    if (!isa_supported(isa)) break;
    ThreadPool pool(1);
    const ComputeContext context{isa, pool};
    count_matmuls(context);
    count_attention(context);
    count_row_ops(context);
    return 0;
  }
  std::fprintf(stderr, "usage: counted_kernels ISA, one that this CPU has\n");
  return 2;
}
