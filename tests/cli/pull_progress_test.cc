#include "cli/pull_progress.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

TEST(PullProgress, Times) {
  EXPECT_EQ(clock_time(0.4), "0:00");
  EXPECT_EQ(clock_time(65), "1:05");
  EXPECT_EQ(clock_time(3725), "1:02:05");
  EXPECT_EQ(clock_time(1e12), "99:59:59");
}

TEST(PullProgress, Lines) {
  EXPECT_EQ(progress_text("model.safetensors", 300'000'000, 1'200'000'000, 10e6),
            "model.safetensors  300.0 MB of 1.20 GB  25 %  10.0 MB/s  1:30 left");
  EXPECT_EQ(progress_text("a", 0, 100, 0), "a  0 B of 100 B  0 %");
  EXPECT_EQ(progress_text("a", 0, 0, 0), "a  0 B of 0 B");
}

}  // namespace
}  // namespace orthrus
