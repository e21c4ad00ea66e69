#include <gtest/gtest.h>
#include "base/dtype.h"
#include "base/thread_pool.h"
TEST(Placeholder, Builds) { EXPECT_EQ(orthrus::f16_to_f32(orthrus::f32_to_f16(1.5f)), 1.5f); }
