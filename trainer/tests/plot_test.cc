#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "trainer/plot/report.h"

namespace orthrus::train {
namespace {

TEST(Forecast, FindsALineInTheLogarithm) {
  RunHistory history;
  history.tokens_before = 1e3;
  history.evaluations.push_back({1e3, 1.8, 1.8, {0.8}});  // the start is not on the line
  const std::vector<double> seven(7, 0.5);
  for (const double tokens : {1e4, 3e4, 1e5, 3e5}) {
    history.evaluations.push_back({tokens, 0.4 + 0.25 * std::log(tokens), 0, seven});
  }
  const auto exact = fit_forecast(history);
  ASSERT_TRUE(exact.has_value());
  EXPECT_NEAR(exact->at(1e6), 0.4 + 0.25 * std::log(1e6), 1e-9);
  EXPECT_NEAR(exact->margin(1e6), 0, 1e-6);
  history.evaluations[2].tokens_per_cycle += 0.1;
  const auto noisy = fit_forecast(history);
  EXPECT_GT(noisy->margin(1e6), noisy->margin(1e5));
  EXPECT_LT(std::abs(noisy->at(1e6) - exact->at(1e6)), noisy->margin(1e6));
  // In the middle of n points the interval is t(n - 2) residual sqrt(1 + 1 / n): t(2) = 4.303.
  EXPECT_NEAR(noisy->margin(std::exp(noisy->mean_log)) / noisy->residual, 4.303 * std::sqrt(1.25),
              0.06);
  EXPECT_EQ(noisy->at(1e300), 8);  // a whole block
  // An evaluation just behind another one takes its place.
  RunHistory twice = history;
  twice.evaluations.push_back(twice.evaluations.back());
  twice.evaluations.back().tokens *= 1.01;
  EXPECT_EQ(fit_forecast(twice)->count, 4);
  // Tokens that hardly differ say nothing of a slope.
  RunHistory close = history;
  for (RunHistory::Evaluation& e : close.evaluations) e.tokens = 1e17 + e.tokens * 1e-3;
  EXPECT_FALSE(fit_forecast(close).has_value());
  history.evaluations.resize(4);
  EXPECT_FALSE(fit_forecast(history).has_value());
}

TEST(Report, ReadsALogAndDrawsIt) {
  const std::string folder = testing::TempDir() + "/orthrus_plot_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/log.jsonl")
      << R"({"event":"start","settings":{"tokens_before":500,"documents":10,"answer_tokens":120,"block_size":8}})"
      << '\n'
      << R"({"event":"evaluation","step":0,"tokens":0,"tokens_per_cycle":1.8,"tokens_per_cycle_mean":1.9,"accuracy":[0.8,0.1]})"
      << '\n'
      << R"({"event":"step","step":1,"loss":6.5,"tokens_per_cycle":1.7,"tokens":768})" << '\n'
      << "{\"event\":\"st";  // cut by a crash
  const RunHistory history = read_history(folder);
  ASSERT_EQ(history.steps.size(), 1u);
  EXPECT_EQ(history.steps[0].loss, 6.5);
  ASSERT_EQ(history.evaluations.size(), 1u);
  EXPECT_EQ(history.evaluations[0].accuracy.size(), 2u);
  EXPECT_EQ(history.steps[0].tokens, 1268);
  EXPECT_EQ(history.tokens_before, 500);
  EXPECT_EQ(read_history(folder, 1000).steps[0].tokens, 1768);
  const std::string page = html_report(history, "a <run>");
  EXPECT_NE(page.find("a &lt;run>"), std::string::npos);
  EXPECT_NE(page.find("<polyline"), std::string::npos);
  EXPECT_EQ(page.find("http"), std::string::npos);  // nothing is loaded from elsewhere
  EXPECT_NE(forecast_text(history).find("needs four"), std::string::npos);
  // 768 diffusion tokens are 96 blocks of 8, on 120 answer tokens.
  RunHistory trained = history;
  trained.evaluations.push_back({500 + 768, 2.125, 2.25, {0.8, 0.1}});
  EXPECT_EQ(evaluation_table(trained),
            "trained on 10 answers of 12 tokens, blocks of 8\n"
            "diffusion tokens  of this run  blocks an answer token  held-out tokens/cycle\n"
            "             500            0                    0.00                   1.80\n"
            "           1.27k          768                    0.80                   2.12\n");
  trained.answer_tokens = 0;  // a log of an early version
  EXPECT_NE(evaluation_table(trained).find("768                       -"), std::string::npos);
  std::filesystem::remove_all(folder);
  EXPECT_THROW(read_history(folder), Error);
}

}  // namespace
}  // namespace orthrus::train
