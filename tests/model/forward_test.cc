#include "model/forward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/output_collector.h"
#include "model/tiny_model.h"

namespace orthrus {
namespace {

double max_difference(std::span<const float> a, std::span<const float> b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<Isa> supported_isas() {
  std::vector<Isa> result;
  for (Isa isa : kIsas) {
    if (isa_supported(isa)) result.push_back(isa);
  }
  return result;
}

class ForwardIsa : public testing::TestWithParam<Isa> {};
INSTANTIATE_TEST_SUITE_P(All, ForwardIsa, testing::ValuesIn(supported_isas()),
                         [](const auto& param) { return std::string(isa_name(param.param)); });

// float32 logits of both views against the official implementation, within 2e-4.
TEST_P(ForwardIsa, LogitsOfBothViewsMatchTheGoldens) {
  TinyModel tiny(WeightFormat::kF32, KvType::kF32, 2, GetParam());
  const Goldens goldens;
  double worst = 0;
  for (int prompt = 0; prompt < 2; ++prompt) {
    const std::string p = std::to_string(prompt) + ".";
    const auto ids = goldens.get<int32_t>(p + "ids");
    BlockTable table(*tiny.blocks);
    worst = std::max(worst,
                     max_difference(tiny.prefill(table, ids), goldens.get<float>(p + "ar_logits")));
    for (int64_t anchor : {1, 20, 47}) {
      for (int64_t block : {2, 8, 32}) {
        const auto name =
            p + "diff_anchor" + std::to_string(anchor) + "_block" + std::to_string(block);
        const auto logits = tiny.draft(table, ids[static_cast<size_t>(anchor)], anchor, block);
        worst = std::max(worst, max_difference(logits, goldens.get<float>(name)));
      }
    }
  }
  EXPECT_LE(worst, 2e-4);
  RecordProperty("max_difference", std::to_string(worst));
  std::printf("largest difference of logits: %.2e\n", worst);
}

TEST_P(ForwardIsa, LayersKeysAndValuesMatchTheGoldens) {
  TinyModel tiny(WeightFormat::kF32, KvType::kF32, 1, GetParam());
  const Goldens goldens;
  const auto ids = goldens.get<int32_t>("0.ids");
  const KvLayout& kv = tiny.blocks->layout();
  for (int64_t layer = 0; layer < kv.layers; ++layer) {
    const std::string l = std::to_string(layer);
    std::vector<float> residual(ids.size() * static_cast<size_t>(tiny.model.config.hidden_size));
    tiny.forward->trace_layer(layer, residual.data());
    BlockTable table(*tiny.blocks);
    tiny.prefill(table, ids);
    EXPECT_LE(max_difference(residual, goldens.get<float>("0.ar_layer" + l + "_out")), 2e-4);
    const auto keys = goldens.get<float>("0.layer" + l + "_keys");
    const auto values = goldens.get<float>("0.layer" + l + "_values");
    const auto tokens = static_cast<int64_t>(ids.size());
    double worst = 0;
    for (int64_t head = 0; head < kv.kv_heads; ++head) {
      const std::byte* base = table.blocks()[0] + static_cast<size_t>(layer) * kv.layer_bytes();
      const auto* k =
          reinterpret_cast<const float*>(base + static_cast<size_t>(head) * kv.key_bytes());
      const auto* v =
          reinterpret_cast<const float*>(base + static_cast<size_t>(kv.kv_heads) * kv.key_bytes() +
                                         static_cast<size_t>(head) * kv.value_bytes());
      for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t d = 0; d < kv.head_dim; ++d) {
          const auto golden = static_cast<size_t>((head * tokens + t) * kv.head_dim + d);
          const float key = k[(t / 16) * 16 * kv.head_dim + d * 16 + t % 16];
          worst = std::max(worst, std::abs(static_cast<double>(key - keys[golden])));
          worst = std::max(worst,
                           std::abs(static_cast<double>(v[t * kv.head_dim + d] - values[golden])));
        }
      }
    }
    EXPECT_LE(worst, 1e-4) << "layer " << layer;
  }
}

struct Case {
  WeightFormat format;
  KvType kv;
  const char* name;
};

class ForwardFormat : public testing::TestWithParam<std::tuple<Case, Isa>> {
 protected:
  TinyModel make(int threads) const {
    const auto& [c, isa] = GetParam();
    return TinyModel(c.format, c.kv, threads, isa);
  }
};
INSTANTIATE_TEST_SUITE_P(
    All, ForwardFormat,
    testing::Combine(testing::Values(Case{WeightFormat::kF32, KvType::kF32, "f32"},
                                     Case{WeightFormat::kBF16, KvType::kBF16, "bf16"},
                                     Case{WeightFormat::kQ8, KvType::kBF16, "q8"},
                                     Case{WeightFormat::kQ4, KvType::kF32, "q4"},
                                     Case{WeightFormat::kQ8, KvType::kQ8, "q8_kv_q8"}),
                     testing::ValuesIn(supported_isas())),
    [](const auto& param) {
      return std::string(std::get<0>(param.param).name) + "_" +
             std::string(isa_name(std::get<1>(param.param)));
    });

// Contract 1: a row's logits do not depend on the chunking or the number of threads.
TEST_P(ForwardFormat, ChunkingAndThreadsDoNotChangeABit) {
  const Goldens goldens;
  auto ids = goldens.get<int32_t>("0.ids");
  const auto more = goldens.get<int32_t>("1.ids");
  ids.insert(ids.end(), more.begin(), more.end());  // 96 tokens: more than a block of the cache
  std::vector<float> reference;
  for (int threads : {1, 2, 3}) {
    TinyModel tiny = make(threads);
    for (int64_t chunk : {256, 1, 7, 64}) {
      BlockTable table(*tiny.blocks);
      const auto logits = tiny.prefill(table, ids, chunk);
      if (reference.empty()) reference = logits;
      EXPECT_TRUE(same_bits(logits, reference)) << threads << " threads, chunk " << chunk;
    }
  }
}

// Several sequences and both views in one pass equal the passes alone, in any order.
TEST_P(ForwardFormat, MixedPassesEqualPassesAlone) {
  const Goldens goldens;
  TinyModel tiny = make(2);
  const auto a = goldens.get<int32_t>("0.ids");
  const auto b = goldens.get<int32_t>("1.ids");
  BlockTable table_a(*tiny.blocks);
  BlockTable table_b(*tiny.blocks);
  tiny.prefill(table_a, std::span(a).first(20));
  tiny.prefill(table_b, std::span(b).first(33));
  table_a.reserve(64);
  table_b.reserve(64);
  std::vector<int32_t> draft_a(8, kMaskToken);
  draft_a[0] = a[20];
  std::vector<int32_t> draft_b(32, kMaskToken);
  draft_b[0] = b[33];
  const std::vector<Span> spans = {
      {&table_a, View::kAr, std::span(a).subspan(20, 9), 20, 0, 9},
      {&table_b, View::kDiffusion, draft_b, 33, 0, 32},
      {&table_b, View::kAr, std::span(b).subspan(33, 1), 33, 0, 1},
      {&table_a, View::kDiffusion, draft_a, 20, 2, 7},
  };
  const int64_t vocab = tiny.model.config.vocab_size;
  std::vector<std::vector<float>> alone;
  for (const Span& span : spans) {
    const auto logits = tiny.forward->run(span);
    alone.emplace_back(logits.begin(), logits.end());
  }
  std::vector<size_t> order = {0, 1, 2, 3};
  unsigned read = 0;  // a bit each
  do {
    std::vector<Span> pass;
    for (size_t i : order) pass.push_back(spans[i]);
    const Logits logits = tiny.forward->run(pass);
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_TRUE(same_bits(logits.of(i), alone[order[i]]))
          << order[0] << order[1] << order[2] << order[3] << ", span " << i;
    }
    // And some of them, or all, read while they are computed: each order has its own choice.
    read = read % 15 + 1;
    std::array<OutputCollector, 4> readers{OutputCollector(vocab), OutputCollector(vocab),
                                           OutputCollector(vocab), OutputCollector(vocab)};
    for (size_t i = 0; i < 4; ++i) pass[i].reader = (read >> i & 1) != 0 ? &readers[i] : nullptr;
    const Logits some = tiny.forward->run(pass);
    for (size_t i = 0; i < 4; ++i) {
      const OutputReader* reader = pass[i].reader;
      EXPECT_EQ(some.of(i).empty(), reader != nullptr);
      EXPECT_TRUE(
          same_bits(reader ? std::span<const float>(readers[i].out) : some.of(i), alone[order[i]]));
      EXPECT_TRUE(readers[i].complete());
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

// A diffusion block anchored at a draft that the same pass verifies equals the same in two passes.
TEST_P(ForwardFormat, DiffusionSpanInsideAnArSpanOfTheSamePass) {
  const Goldens goldens;
  TinyModel tiny = make(2);
  const auto ids = goldens.get<int32_t>("0.ids");
  BlockTable table(*tiny.blocks);
  tiny.prefill(table, std::span(ids).first(16));
  table.reserve(64);
  const auto verified = std::span(ids).subspan(16, 8);
  for (int64_t anchor = 16; anchor < 24; ++anchor) {
    std::vector<int32_t> block(8, kMaskToken);
    block[0] = ids[static_cast<size_t>(anchor)];
    const Span verify{&table, View::kAr, verified, 16, 0, 8};
    const Span draft{&table, View::kDiffusion, block, anchor, 0, 8};
    tiny.forward->run(verify);
    const auto second = tiny.forward->run(draft);
    const std::vector<float> two_passes(second.begin(), second.end());
    // A fresh table: the keys of positions from 16 on exist only within the pass.
    BlockTable fresh(*tiny.blocks);
    tiny.prefill(fresh, std::span(ids).first(16));
    fresh.reserve(64);
    Span both[] = {draft, verify};
    both[0].table = both[1].table = &fresh;
    const Logits one = tiny.forward->run(both);
    EXPECT_TRUE(same_bits(one.of(0), two_passes)) << "anchor " << anchor;
  }
}

TEST(Forward, DiffusionWritesNothingToTheCache) {
  const Goldens goldens;
  TinyModel tiny(WeightFormat::kBF16, KvType::kBF16, 2);
  const auto ids = goldens.get<int32_t>("0.ids");
  BlockTable table(*tiny.blocks);
  tiny.prefill(table, ids);
  const std::byte* block = table.blocks()[0];
  const std::vector<std::byte> before(block, block + tiny.blocks->layout().block_bytes());
  tiny.draft(table, ids[30], 30, 32);
  EXPECT_EQ(std::memcmp(before.data(), block, before.size()), 0);
}

}  // namespace
}  // namespace orthrus
