// Twins in fewer bits of what the diffusion view reads: its rows use them, the AR view's never do.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>

#include "model/weights.h"
#include "tiny_model.h"

namespace orthrus {
namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

LoadRequest request(WeightFormat format, std::optional<WeightFormat> draft_format) {
  LoadRequest r;
  r.format = format;
  r.draft_format = draft_format;
  r.diffusion = LoadRequest::Diffusion::kCheckpoint;
  return r;
}

class DraftWeights : public testing::Test {
 protected:
  DraftWeights()
      : checkpoint_(open_checkpoint(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint")),
        ids_(Goldens().get<int32_t>("0.ids")) {
    block_.fill(kMaskToken);
    block_[0] = ids_[16];
  }
  ReadyModel load(WeightFormat format, std::optional<WeightFormat> draft_format) const {
    return {checkpoint_, request(format, draft_format), KvType::kBF16, 2};
  }

  Checkpoint checkpoint_;
  std::vector<int32_t> ids_;
  std::array<int32_t, 8> block_;
};

TEST_F(DraftWeights, DraftRowsReadTheTwinsAndTheOthersDoNot) {
  for (const WeightFormat format : {WeightFormat::kF32, WeightFormat::kBF16, WeightFormat::kQ8}) {
    ReadyModel with = load(format, WeightFormat::kQ4);
    ReadyModel without = load(format, std::nullopt);
    ASSERT_TRUE(with.model.layers[0].draft_mlp);
    EXPECT_EQ(with.model.layers[0].draft_mlp->down_proj.form(), TensorType::kQ4_0);
    EXPECT_EQ(with.model.layers[0].diff->q_proj.form(), TensorType::kQ4_0);

    BlockTable table(*with.blocks), plain(*without.blocks);
    const std::span<const int32_t> prompt = std::span(ids_).first(16);
    EXPECT_TRUE(same_bits(with.prefill(table, prompt), without.prefill(plain, prompt)));

    // The twins as a model of their own, over the same cache.
    Model twins = with.model;
    for (LayerWeights& layer : twins.layers) layer.mlp = *std::exchange(layer.draft_mlp, {});
    if (twins.draft_lm_head) twins.lm_head = *std::exchange(twins.draft_lm_head, {});
    Forward alone(twins, with.blocks->layout(), with.context, 64);
    // The embedding stays the AR view's, tied or not.
    if (!twins.embedding) twins.embedding = with.model.lm_head;
    table.reserve(32);
    const Span draft{&table, View::kDiffusion, block_, 16, 0, 8};
    const auto expected_rows = alone.run(draft);
    const std::vector<float> expected(expected_rows.begin(), expected_rows.end());
    EXPECT_TRUE(same_bits(with.forward->run(draft), expected));

    // And so in company: each row is what it is alone.
    const auto verified = std::span(ids_).subspan(16, 4);
    const Span verify{&table, View::kAr, verified, 16, 0, 4};
    const auto verify_rows = with.forward->run(verify);
    const std::vector<float> checked(verify_rows.begin(), verify_rows.end());
    const std::array both{draft, verify, draft};
    const Logits together = with.forward->run(both);
    EXPECT_TRUE(same_bits(together.of(0), expected));
    EXPECT_TRUE(same_bits(together.of(1), checked));
    EXPECT_TRUE(same_bits(together.of(2), expected));
  }
}

TEST_F(DraftWeights, WhatHasFewBitsIsItsOwnTwin) {
  const ReadyModel same = load(WeightFormat::kQ4, std::nullopt);
  const ReadyModel four = load(WeightFormat::kQ4, WeightFormat::kQ4);
  EXPECT_FALSE(four.model.layers[0].draft_mlp);
  EXPECT_FALSE(four.model.draft_lm_head);
  EXPECT_EQ(four.model.weight_bytes(), same.model.weight_bytes());
}

TEST_F(DraftWeights, TakeTheMemoryOfTheTwins) {
  const Model same = std::move(load(WeightFormat::kBF16, std::nullopt).model);
  const Model eight = std::move(load(WeightFormat::kBF16, WeightFormat::kQ8).model);
  EXPECT_EQ(eight.weight_bytes() - eight.diffusion_bytes(),
            same.weight_bytes() - same.diffusion_bytes());
  size_t twins = eight.draft_lm_head->bytes();
  for (const LayerWeights& layer : eight.layers) {
    for (const auto member :
         {&MlpWeights::gate_proj, &MlpWeights::up_proj, &MlpWeights::down_proj}) {
      twins += ((*layer.draft_mlp).*member).bytes();
    }
  }
  // The `_diff` matrices went from 16 to 8.5 bits.
  EXPECT_GT(eight.diffusion_bytes(), twins);
  EXPECT_LT(eight.diffusion_bytes(), twins + same.diffusion_bytes());
}

TEST_F(DraftWeights, APartOfTheVocabularyGivesTheFirstLogits) {
  ReadyModel ready = load(WeightFormat::kBF16, WeightFormat::kQ8);
  BlockTable table(*ready.blocks);
  ready.prefill(table, std::span(ids_).first(16));
  table.reserve(32);
  const Span draft{&table, View::kDiffusion, block_, 16, 0, 8};
  Span whole = draft;
  whole.whole_logits = true;
  const auto all_rows = ready.forward->run(draft);
  const std::vector<float> all(all_rows.begin(), all_rows.end());
  const auto whole_rows = ready.forward->run(whole);
  const std::vector<float> by_ar(whole_rows.begin(), whole_rows.end());
  EXPECT_FALSE(same_bits(all, by_ar));  // the AR view's lm_head has 16 bits

  constexpr size_t kPart = 100;  // no whole number of panels
  ready.model.draft_lm_head = ready.model.draft_lm_head->first_rows(kPart);
  EXPECT_EQ(ready.model.draft_vocab(), 100);
  const auto vocab = static_cast<size_t>(ready.model.config.vocab_size);
  const std::array both{draft, whole};
  const Logits logits = ready.forward->run(both);
  ASSERT_EQ(logits.of(0).size(), 8 * kPart);
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(same_bits(logits.of(0).subspan(i * kPart, kPart),
                          std::span(all).subspan(i * vocab, kPart)));
  }
  EXPECT_TRUE(same_bits(logits.of(1), by_ar));
}

TEST_F(DraftWeights, NoTwinsWithoutADiffusionView) {
  LoadRequest plain = request(WeightFormat::kBF16, WeightFormat::kQ4);
  plain.diffusion = LoadRequest::Diffusion::kNone;
  const ReadyModel ready(checkpoint_, plain, KvType::kBF16, 1);
  EXPECT_FALSE(ready.model.layers[0].draft_mlp);
  EXPECT_FALSE(ready.model.draft_lm_head);
}

}  // namespace
}  // namespace orthrus
