// Whole runs on the tiny checkpoint: killed and resumed, stopped, broken.
#include "trainer/fit/fit.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "trainer/fit/simulate.h"
#include "trainer/fit/training_state.h"
#include "trainer/tests/tiny_student.h"

extern char** environ;

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

class Fit : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/orthrus_fit_" + std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_shard(folder_ + "/made.shard", tiny_documents(20));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string out(const std::string& name) const { return folder_ + "/" + name; }

  pid_t start(const std::string& name, std::vector<std::string> extra) const {
    std::vector<std::string> words{ORTHRUS_TRAIN_PROGRAM,
                                   "fit",
                                   "-m",
                                   tiny_path(),
                                   "--data",
                                   folder_ + "/made.shard",
                                   "-o",
                                   out(name),
                                   "--row-tokens",
                                   "90",
                                   "--row-blocks",
                                   "10",
                                   "--checkpoint-minutes",
                                   "0"};
    words.insert(words.end(), extra.begin(), extra.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    return child;
  }
  static int wait(pid_t child) {
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// The loss of every step in the log, in its order.
  std::vector<std::pair<int64_t, double>> losses(const std::string& name) const {
    std::vector<std::pair<int64_t, double>> result;
    std::ifstream file(out(name) + "/log.jsonl");
    for (std::string line; std::getline(file, line);) {
      const auto json = nlohmann::json::parse(line, nullptr, false);
      if (json.is_object() && json["event"] == "step") {
        result.emplace_back(json["step"], json["loss"]);
      }
    }
    return result;
  }
  void wait_for_steps(const std::string& name, size_t steps) const {
    for (int i = 0; i < 6000 && losses(name).size() < steps; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ASSERT_GE(losses(name).size(), steps);
  }

  std::string folder_;
};

TEST_F(Fit, KilledInMidStepAndResumedItHasTheSameCurve) {
  const std::vector<std::string> schedule{"--steps", "14"};
  EXPECT_EQ(wait(start("straight", schedule)), 0);
  const pid_t killed = start("killed", schedule);
  wait_for_steps("killed", 5);
  ::kill(killed, SIGKILL);
  EXPECT_EQ(wait(killed), 128 + SIGKILL);
  EXPECT_LT(losses("killed").size(), 14u);
  EXPECT_EQ(wait(start("killed", {"--steps", "14", "--resume"})), 0);

  const auto expected = losses("straight");
  const auto resumed = losses("killed");
  ASSERT_EQ(expected.size(), 14u);
  ASSERT_EQ(resumed.size(), 14u);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(resumed[i].first, expected[i].first);
    EXPECT_EQ(resumed[i].second, expected[i].second) << "step " << i + 1;
  }
  EXPECT_LT(expected.back().second, expected.front().second);
  int checkpoints = 0;
  for (const auto& entry : fs::directory_iterator(out("killed"))) {
    checkpoints += entry.path().extension() == ".safetensors";
  }
  EXPECT_EQ(checkpoints, 2);
}

TEST_F(Fit, SigtermSavesAndStops) {
  const pid_t child = start("stopped", {"--steps", "100000"});
  wait_for_steps("stopped", 3);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait(child), 0);
  const auto steps = losses("stopped");
  EXPECT_EQ(latest_state(out("stopped")),
            fmt::format("{}/checkpoint-{:08}.safetensors", out("stopped"), steps.back().first));
}

TEST_F(Fit, OtherSettingsAndAUsedFolderAreRefused) {
  EXPECT_EQ(wait(start("run", {"--steps", "2"})), 0);
  EXPECT_EQ(wait(start("run", {"--steps", "2"})), 2);
  EXPECT_EQ(wait(start("run", {"--steps", "2", "--resume", "--lr", "0.5"})), 2);
  EXPECT_EQ(wait(start("run", {"--steps", "2", "--resume"})), 0);
}

TEST_F(Fit, ALossThatIsNotFiniteStopsWithItsRowSaved) {
  FitOptions options;
  options.model = tiny_path();
  options.data = {folder_ + "/made.shard"};
  options.out = out("broken");
  options.plan.row_tokens = 90;
  options.plan.row_blocks = 10;
  options.steps = 50;
  options.learning_rate = 1e30;
  options.warmup_steps = 0;
  EXPECT_THROW(fit(options), Error);
  std::ifstream file(out("broken") + "/bad-step.json");
  const nlohmann::json saved = nlohmann::json::parse(file);
  EXPECT_GT(saved["tokens"].size(), 0u);
  EXPECT_GT(saved["blocks"].size(), 0u);
  EXPECT_FALSE(latest_state(out("broken")).has_value());
}

/// The last evaluation of a run's log.
double last_evaluation(const std::string& folder) {
  double result = 0;
  std::ifstream file(folder + "/log.jsonl");
  for (std::string line; std::getline(file, line);) {
    const auto json = nlohmann::json::parse(line);
    if (json["event"] == "evaluation") result = json["tokens_per_cycle"];
  }
  return result;
}

// Answers of the tiny model itself (made by `orthrus-train data`): from fresh copies, a minute on
// one core brings the drafts at least halfway to those of the shipped view.
TEST_F(Fit, CopiesComeHalfwayToTheShippedView) {
  const std::string data = std::string(ORTHRUS_SOURCE_DIR) + "/trainer/tests/data/";
  FitOptions options;
  options.model = tiny_path();
  options.adapter = "copy";
  options.data = {data + "tiny_train.shard"};
  options.held_out = {data + "tiny_held_out.shard"};
  options.out = out("learned");
  options.step_rows = 1;
  options.learning_rate = 2e-3;
  options.steps = 220;
  ASSERT_TRUE(fit(options));

  std::vector<Document> documents = read_shard(options.held_out[0]).documents;
  documents.resize(static_cast<size_t>(options.evaluation_documents));
  const auto of = [&](DiffusionSource source) {
    return simulate_cycles(tiny_model(source), documents, 8, 384).tokens_per_cycle();
  };
  const double start = of(DiffusionSource::kCopy), shipped = of(DiffusionSource::kCheckpoint);
  const double learned = last_evaluation(options.out);
  std::printf("tokens per cycle: copies %.3f, learned %.3f, shipped %.3f\n", start, learned,
              shipped);
  EXPECT_GT(shipped, start + 0.5);
  EXPECT_GE(learned, (start + shipped) / 2);
}

/// Drafts of a document that repeats itself, by hand: the cycles of the answer add up to its
/// length.
TEST(Simulation, CyclesCoverTheAnswer) {
  const DualModel model = tiny_model(DiffusionSource::kCheckpoint);
  const Shard data = tiny_documents(3);
  const Simulation s = simulate_cycles(model, data.documents, 8, 1000);
  EXPECT_EQ(s.documents, 3);
  // 35 tokens behind the first one of each answer: accepted drafts and bonus tokens, of which the
  // last may fall away.
  EXPECT_GE(s.accepted + s.cycles, 3 * 35);
  EXPECT_LE(s.accepted + s.cycles, 3 * 36);
  EXPECT_EQ(s.rows[0], 3 * 35);
  EXPECT_EQ(s.rows[6], 3 * 29);
}

}  // namespace
}  // namespace orthrus::train
