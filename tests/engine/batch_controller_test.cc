#include "engine/batch_controller.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

using std::chrono::milliseconds;

class BatchControllerTest : public testing::Test {
 protected:
  /// One interval later.
  void observe(double utilisation, int64_t waiting = 0, bool spare = true, int64_t answers = 0) {
    controller_.observe(now_ += milliseconds(500), {utilisation, waiting, answers, spare});
  }
  BatchController::Clock::time_point now_ = BatchController::Clock::now();
  BatchController controller_{{.first = 4, .most = 12}};
};

TEST_F(BatchControllerTest, GrowsByOneBelowTheTarget) {
  EXPECT_EQ(controller_.batch(), 4);
  observe(0.7);
  EXPECT_EQ(controller_.batch(), 5);
  observe(0.7, 3);  // not yet low enough to take in the queue
  EXPECT_EQ(controller_.batch(), 6);
  observe(0.7, 3, /*spare=*/false);
  EXPECT_EQ(controller_.batch(), 6);
  observe(0.8);
  EXPECT_EQ(controller_.batch(), 6);
  for (int i = 0; i < 20; ++i) observe(0.7);
  EXPECT_EQ(controller_.batch(), 12);
}

TEST_F(BatchControllerTest, SplitsWhereItIsTightAndMergesTheQueueWhereItIsNot) {
  observe(0.9, 5);
  EXPECT_EQ(controller_.batch(), 2);
  EXPECT_FALSE(controller_.admits());
  observe(0.7);
  EXPECT_FALSE(controller_.admits());  // in between it holds
  observe(0.5, 5);
  EXPECT_TRUE(controller_.admits());
  EXPECT_EQ(controller_.batch(), 9);  // 2, 1 by growth at 0.7, 5 of the queue, 1 by growth
  for (int i = 0; i < 10; ++i) observe(0.99);
  EXPECT_EQ(controller_.batch(), 1);
}

TEST_F(BatchControllerTest, DoesNotSplitFurtherWhileTheLastSplitHasNoEffect) {
  observe(0.9, 0, true, 4);
  EXPECT_EQ(controller_.batch(), 2);
  observe(0.9, 0, true, 4);  // the other two hold their blocks
  observe(0.9, 0, true, 3);
  EXPECT_EQ(controller_.batch(), 2);
  observe(0.9, 0, true, 2);
  EXPECT_EQ(controller_.batch(), 1);
}

TEST_F(BatchControllerTest, TakesInAnswersThatHaveNoPlace) {
  observe(0.3, 1, true, 8);  // 4 of 8 have one
  EXPECT_EQ(controller_.batch(), 10);
}

TEST_F(BatchControllerTest, ActsOnceAnIntervalButShutsTheDoorAtOnce) {
  observe(0.7);
  EXPECT_EQ(controller_.batch(), 5);
  controller_.observe(now_ + milliseconds(499), {.utilisation = 0.7});
  EXPECT_EQ(controller_.batch(), 5);
  controller_.observe(now_ + milliseconds(499), {.utilisation = 0.86});
  EXPECT_EQ(controller_.batch(), 5);
  EXPECT_FALSE(controller_.admits());
}

TEST(BatchController, NeverBeginsWithMoreThanItMayHave) {
  EXPECT_EQ(BatchController({.first = 4, .most = 2}).batch(), 2);
}

}  // namespace
}  // namespace orthrus
