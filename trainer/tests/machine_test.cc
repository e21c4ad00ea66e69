// What a run says of memory, matrix products and operations before and while it runs.
#include "tests/formats/demo_model.h"
#include "trainer/fit/flops.h"
#include "trainer/fit/matmul_rate.h"
#include "trainer/fit/memory_prediction.h"
#include "trainer/tests/fit_runs.h"

namespace orthrus::train {
namespace {

TEST(TrainingFlops, CountsWhatIsNeededByHand) {
  ModelConfig c;
  c.num_layers = 2;
  c.hidden_size = 8;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 3;
  c.intermediate_size = 10;
  c.vocab_size = 100;
  PlannedRow row;
  row.row.tokens.assign(20, 1);
  row.row.documents = {{0, 20}};
  // AR rows 5, 6, 7 and 7, 8: four of them, imitated by five rows.
  row.blocks = {{{5, 0}, 3}, {{7, 0}, 2}};
  // A layer: qkv (4 + 2 * 2) * 3 * 8 = 192, o 8 * 12 = 96, three of 10 * 8 = 240.
  const double layers = 2 * (192 + 96 + 240), trained = 2 * (192 + 96), head = 800;
  const double block_rows = 2 * 4;
  EXPECT_EQ(training_flops(c, row, 4), 2 * (20 * layers + 2 * block_rows * layers +
                                            block_rows * trained + (4 + 2 * 5) * head));
}

TEST(MatmulRate, BothAreMeasured) {
  const MatmulRate rate = measure_matmul_rate();
  EXPECT_GT(rate.gflops, 0.5);
  EXPECT_GT(rate.peak_gflops, rate.gflops / 2);
  EXPECT_TRUE((MatmulRate{20, 100}.slow()));
  EXPECT_FALSE((MatmulRate{40, 100}.slow()));
}

class Machine : public Fit {
 protected:
  /// Runs two steps; the prediction in the log against the highest memory of the process.
  void compare(const std::string& model, const std::string& data,
               const std::vector<std::string>& extra) {
    std::vector<std::string> words{ORTHRUS_TRAIN_PROGRAM,
                                   "fit",
                                   "-m",
                                   model,
                                   "--adapter",
                                   "copy",
                                   "--data",
                                   data,
                                   "-o",
                                   out("run"),
                                   "--steps",
                                   "2",
                                   "--step-rows",
                                   "1"};
    words.insert(words.end(), extra.begin(), extra.end());
    const pid_t child = spawn(words);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const auto start = events("run", "start");
    ASSERT_EQ(start.size(), 1u);
    const double mib = 1 << 20;
    const double predicted = start[0]["machine"]["memory_bytes"].get<double>() / mib;
    const auto end = events("run", "end");
    ASSERT_EQ(end.size(), 1u);
    const double taken = end[0]["memory_peak_bytes"].get<double>() / mib;
    std::printf("predicted %.0f MiB, taken %.0f MiB\n", predicted, taken);
    EXPECT_NEAR(predicted / taken, 1, 0.1);
  }
};

TEST_F(Machine, MemoryOfTheTinyModelIsPredicted) {
  compare(tiny_path(), std::string(ORTHRUS_SOURCE_DIR) + "/trainer/tests/data/tiny_train.shard",
          {});
}

TEST_F(Machine, MoreRowsAreInThePrediction) {
  compare(tiny_path(), std::string(ORTHRUS_SOURCE_DIR) + "/trainer/tests/data/tiny_train.shard",
          {"--row-tokens", "800", "--row-blocks", "200", "--optimizer", "muon"});
}

TEST_F(Machine, ARunThatCannotFitIsRefused) {
  EXPECT_EQ(wait(spawn({ORTHRUS_TRAIN_PROGRAM, "fit", "-m", tiny_path(), "--data",
                        folder_ + "/made.shard", "-o", out("run"), "--row-tokens", "65536",
                        "--row-blocks", "65536", "--block", "1024", "--steps", "1"})),
            1);
  EXPECT_FALSE(std::filesystem::exists(out("run")));  // before anything was begun
}

TEST_F(Machine, BlocksThatCannotBeAreNotInThePrediction) {
  MemoryQuestion question;
  question.row.row_blocks = 383;
  const ModelConfig config = open_checkpoint(tiny_path()).config;
  const int64_t whole = predict_memory(config, question).total();
  question.row.row_blocks = 65536;
  EXPECT_EQ(predict_memory(config, question).total(), whole);
}

// Held-out documents are not cut to the rows of training.
TEST_F(Machine, LongerHeldOutDocumentsAreInThePrediction) {
  write_shard(folder_ + "/long.shard", tiny_documents(2, 9000));
  compare(tiny_path(), std::string(ORTHRUS_SOURCE_DIR) + "/trainer/tests/data/tiny_train.shard",
          {"--held-out", folder_ + "/long.shard", "--row-tokens", "90", "--row-blocks", "10"});
}

class DemoMachine : public Machine {
 protected:
  std::string data() const {
    Shard shard = tiny_documents(10, 384);
    shard.vocab_size = 49152;
    write_shard(folder_ + "/demo.shard", shard);
    return folder_ + "/demo.shard";
  }
};

TEST_F(DemoMachine, MemoryOfTheDemoModelIsPredicted) {
  compare(orthrus::testing::demo_model(), data(), {"--row-tokens", "128", "--row-blocks", "8"});
}

TEST_F(DemoMachine, LongRowsOfTheDemoModelArePredicted) {
  compare(orthrus::testing::demo_model(), data(), {});
}

TEST_F(Machine, EveryStepSaysItsSpeed) {
  EXPECT_EQ(wait(start("run", {"--steps", "2"})), 0);
  const auto start = events("run", "start");
  ASSERT_EQ(start.size(), 1u);
  EXPECT_GT(start[0]["machine"]["matmul_gflops"], 0);
  EXPECT_GT(start[0]["machine"]["fma_gflops"], 0);
  for (const auto& step : events("run", "step")) {
    EXPECT_GT(step["flops_per_second"], 0);
    EXPECT_LT(step["flops_per_second"], 1e9 * start[0]["machine"]["fma_gflops"].get<double>());
  }
}

}  // namespace
}  // namespace orthrus::train
