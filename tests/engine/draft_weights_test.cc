#include "engine/draft_weights.h"

#include <gtest/gtest.h>

#include "engine/model_registry.h"
#include "test_models.h"

namespace orthrus {
namespace {

constexpr MachineRates kSlowMemory{
    .bytes_per_second = 1e10, .f32_flops = 1e12, .int8_ops = 4e12, .bf16_flops = 2e12};
constexpr int64_t kPlenty = int64_t{1} << 40;

TEST(ChooseDraftFormat, FollowsTheWish) {
  const Checkpoint tiny = open_checkpoint(tiny_path());
  const auto choose = [&](DraftWeights wish) {
    return choose_draft_format(wish, tiny, tiny.tensors.get(), WeightFormat::kBF16, kSlowMemory, 0);
  };
  EXPECT_EQ(choose(DraftWeights::kSame), std::nullopt);
  EXPECT_EQ(choose(DraftWeights::kQ8), WeightFormat::kQ8);
  EXPECT_EQ(choose(DraftWeights::kQ4), WeightFormat::kQ4);
}

TEST(ChooseDraftFormat, AutoTakesFewerBitsWhereReadingTakesTheTime) {
  const Checkpoint tiny = open_checkpoint(tiny_path());
  const auto choose = [&](WeightFormat format, const MachineRates& rates, int64_t available) {
    return choose_draft_format(DraftWeights::kAuto, tiny, tiny.tensors.get(), format, rates,
                               available);
  };
  EXPECT_EQ(choose(WeightFormat::kBF16, kSlowMemory, kPlenty), WeightFormat::kQ4);
  EXPECT_EQ(choose(WeightFormat::kQ8, kSlowMemory, kPlenty), WeightFormat::kQ4);
  // Four bits are few already.
  EXPECT_EQ(choose(WeightFormat::kQ4, kSlowMemory, kPlenty), std::nullopt);
  // No room for twins.
  EXPECT_EQ(choose(WeightFormat::kBF16, kSlowMemory, 1000), std::nullopt);
  // Integer products far slower than those of bf16: fewer bytes do not help.
  const MachineRates slow_integers{
      .bytes_per_second = 1e13, .f32_flops = 1e12, .int8_ops = 1e11, .bf16_flops = 1e12};
  EXPECT_EQ(choose(WeightFormat::kBF16, slow_integers, kPlenty), std::nullopt);
}

// The int8 adapter of a 4-bit base: of what drafting reads, the `_diff` weights alone may shrink.
TEST(ChooseDraftFormat, AutoCountsTheDiffusionWeightsAsTheyAre) {
  const Checkpoint demo = open_checkpoint(resolve_model(demo_path()).path);
  const Adapter adapter = open_adapter(demo_adapter(), demo.config);
  const auto choose = [&](const TensorSource* diffusion) {
    return choose_draft_format(DraftWeights::kAuto, demo, diffusion, WeightFormat::kAuto,
                               kSlowMemory, kPlenty);
  };
  EXPECT_EQ(choose(adapter.tensors.get()), WeightFormat::kQ4);
  EXPECT_EQ(choose(nullptr), std::nullopt);  // copies have few bits already
}

}  // namespace
}  // namespace orthrus
