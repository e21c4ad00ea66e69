// How far a run is, and whether its products wait for cores.
#include "trainer/fit/schedule.h"

#include <gtest/gtest.h>

#include "trainer/fit/core_watch.h"

namespace orthrus::train {
namespace {

TEST(Schedule, ThePercentageSaysOfWhatAndEndsAt100) {
  FitOptions options;
  options.minutes = 85;
  TrainingState state;
  EXPECT_EQ(done_text(options, state), "0 % of 85 minutes");
  EXPECT_EQ(minutes_left(options, state), 0);
  state.seconds = 0.3 * 60 * 85;
  EXPECT_EQ(done_text(options, state), "30 % of 85 minutes");
  EXPECT_NEAR(minutes_left(options, state), 0.7 * 85, 1e-9);
  state.seconds = 60 * 85 - 0.1;  // one step is still to come
  EXPECT_EQ(done_text(options, state), "99 % of 85 minutes");
  state.seconds = 60 * 90;  // a long last step
  EXPECT_EQ(done_text(options, state), "100 % of 85 minutes");
  EXPECT_EQ(minutes_left(options, state), 0);
  EXPECT_GE(share_done(options, state), 1);
  options.steps = 100;
  state.step = 29;
  EXPECT_EQ(done_text(options, state), "29 % of 100 steps");
}

TEST(Schedule, TheLearningRateRisesAndFallsToATenth) {
  FitOptions options;
  options.steps = 1000;
  options.learning_rate = 1;
  TrainingState state;
  EXPECT_NEAR(learning_rate(options, state), 0.1, 1e-12);  // the first of ten steps
  state.step = 500;
  EXPECT_NEAR(learning_rate(options, state), 0.55, 1e-12);
  state.step = 2000;
  EXPECT_NEAR(learning_rate(options, state), 0.1, 1e-12);
}

TEST(CoreWatch, SlowStepsWhoseProductsWaitAreToldOnceInTenMinutes) {
  double waits = 20;
  int measured = 0;
  CoreWatch watch(90e9, [&] {
    ++measured;
    return waits;
  });
  for (int i = 0; i < 4; ++i) EXPECT_EQ(watch.after_step(29e9, i), 0);
  EXPECT_EQ(watch.after_step(31e9, 4), 0);  // fast enough: counted anew
  for (int i = 5; i < 9; ++i) EXPECT_EQ(watch.after_step(29e9, i), 0);
  EXPECT_EQ(measured, 0);
  EXPECT_EQ(watch.after_step(29e9, 9), 20);
  for (int second = 10; second < 609; ++second) EXPECT_EQ(watch.after_step(1e9, second), 0);
  EXPECT_EQ(measured, 1);
  EXPECT_EQ(watch.after_step(1e9, 609), 20);
}

// A small model never comes near the rate of large products: no reason to warn.
TEST(CoreWatch, SlowStepsAloneAreNoWarning) {
  double waits = 1.1;
  int measured = 0;
  CoreWatch watch(90e9, [&] {
    ++measured;
    return waits;
  });
  for (int second = 0; second < 60; ++second) EXPECT_EQ(watch.after_step(1e9, second), 0);
  EXPECT_EQ(measured, 1);
  waits = 5;  // looked at once a minute
  EXPECT_EQ(watch.after_step(1e9, 64), 5);
  CoreWatch unknown(0, [] { return 100.0; });  // on a GPU
  for (int second = 0; second < 60; ++second) EXPECT_EQ(unknown.after_step(1, second), 0);
}

TEST(CoreWatch, TheMeanIsNeverFasterThanTheFastest) {
  const double waits = product_waits();
  EXPECT_GE(waits, 1);
  EXPECT_LT(waits, 1e6);
}

}  // namespace
}  // namespace orthrus::train
