#include "server/answer_job.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace orthrus {
namespace {

TEST(Places, AllOrNone) {
  Places places(3);
  EXPECT_TRUE(places.take(2));
  EXPECT_FALSE(places.take(2));
  EXPECT_FALSE(places.full());
  EXPECT_TRUE(places.take(1));
  EXPECT_TRUE(places.full());
  EXPECT_FALSE(places.take(1));
  places.give_back(3);
  EXPECT_FALSE(places.take(4));
  EXPECT_TRUE(places.take(3));
}

// One that asks for more than there is takes nothing from others meanwhile.
TEST(Places, ExactWhateverOthersAskFor) {
  Places places(2);
  ASSERT_TRUE(places.take(1));
  std::vector<std::thread> greedy;
  for (int i = 0; i < 2; ++i) {
    greedy.emplace_back([&] {
      for (int n = 0; n < 20'000; ++n) EXPECT_FALSE(places.take(2));
    });
  }
  for (int n = 0; n < 20'000; ++n) {
    ASSERT_FALSE(places.full());
    ASSERT_TRUE(places.take(1));
    places.give_back(1);
  }
  for (std::thread& thread : greedy) thread.join();
}

}  // namespace
}  // namespace orthrus
