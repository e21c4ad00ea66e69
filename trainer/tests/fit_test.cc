// Whole runs on the tiny checkpoint: killed and resumed, stopped, broken.
#include "trainer/fit/fit.h"

#include <sys/resource.h>

#include <ctime>

#include "base/error.h"
#include "trainer/fit/simulate.h"
#include "trainer/fit/training_state.h"
#include "trainer/tests/captured_run.h"
#include "trainer/tests/fit_runs.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

TEST_F(Fit, KilledInMidStepAndResumedItHasTheSameCurve) {
  const std::vector<std::string> schedule{"--steps", "14"};
  EXPECT_EQ(wait(start("straight", schedule)), 0);
  pid_t killed = start("killed", schedule);
  wait_for_steps("killed", 3);
  ::kill(killed, SIGKILL);
  EXPECT_EQ(wait(killed), 128 + SIGKILL);
  // Killed once more, with several steps behind the last checkpoint: they are made again.
  killed = start("killed", {"--steps", "14", "--resume", "--checkpoint-minutes", "1000"});
  wait_for_steps("killed", 7);
  ::kill(killed, SIGKILL);
  EXPECT_EQ(wait(killed), 128 + SIGKILL);
  const auto logged = static_cast<int64_t>(losses("killed").size());
  EXPECT_LT(logged, 14);
  EXPECT_LT(inspect_state(saved_states(out("killed")).front()).state.step, logged - 1);
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
  EXPECT_EQ(wait(child), kStopped);
  const auto steps = losses("stopped");
  EXPECT_EQ(saved_states(out("stopped")).front(),
            fmt::format("{}/checkpoint-{:08}.safetensors", out("stopped"), steps.back().first));
}

/// Files of the run may not grow past 64 KiB for a while: every checkpoint fails as on a full disk.
TEST_F(Fit, AFullDiskCostsCheckpointsOnly) {
  ::signal(SIGXFSZ, SIG_IGN);  // inherited: the write fails then
  const pid_t child = start("full", {"--steps", "100000"});
  wait_for_steps("full", 3);
  const auto limit = [&](rlim_t bytes) {
    const rlimit value{bytes, RLIM_INFINITY};
    EXPECT_EQ(::prlimit(child, RLIMIT_FSIZE, &value, nullptr), 0);
  };
  limit(1 << 16);
  wait_for_steps("full", losses("full").size() + 2);
  const std::string before = saved_states(out("full")).front();
  wait_for_steps("full", losses("full").size() + 3);
  EXPECT_EQ(saved_states(out("full")).front(), before);
  EXPECT_GT(inspect_state(before).state.tokens, 0);
  for (const auto& entry : fs::directory_iterator(out("full"))) {
    EXPECT_NE(entry.path().extension(), ".tmp") << entry.path();
  }
  limit(RLIM_INFINITY);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait(child), kStopped);
  const auto steps = losses("full");
  EXPECT_EQ(inspect_state(saved_states(out("full")).front()).state.step, steps.back().first);
  EXPECT_LT(steps.size(), 5000u);  // the log alone stayed below the limit
  ::signal(SIGXFSZ, SIG_DFL);
}

TEST_F(Fit, OtherSettingsAndAUsedFolderAreRefused) {
  EXPECT_EQ(wait(start("run", {"--steps", "2"})), 0);
  EXPECT_EQ(wait(start("run", {"--steps", "2"})), 2);
  EXPECT_EQ(wait(start("run", {"--steps", "2", "--resume", "--lr", "0.5"})), 2);
  Shard other = tiny_documents(20);  // as many documents and tokens, but another token
  other.documents[7].tokens[9] ^= 1;
  write_shard(folder_ + "/made.shard", other);
  EXPECT_EQ(wait(start("run", {"--steps", "2", "--resume"})), 2);
  write_shard(folder_ + "/made.shard", tiny_documents(20));
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
  ASSERT_EQ(saved["rows"].size(), 2u);
  EXPECT_GT(saved["rows"][1]["tokens"].size(), 0u);
  EXPECT_GT(saved["rows"][1]["blocks"].size(), 0u);
  EXPECT_TRUE(saved_states(out("broken")).empty());
}

TEST_F(Fit, ADamagedCheckpointGivesWayToTheOneBefore) {
  pid_t child = start("damaged", {"--steps", "100000"});
  wait_for_steps("damaged", 3);
  ::kill(child, SIGTERM);
  ASSERT_EQ(wait(child), kStopped);
  const auto states = saved_states(out("damaged"));
  ASSERT_EQ(states.size(), 2u);
  const int64_t before = inspect_state(states[1]).state.step;
  fs::resize_file(states[0], fs::file_size(states[0]) / 2);
  const std::string unfinished = states[0] + ".4711.tmp";
  std::ofstream(unfinished) << "half";
  child = start("damaged", {"--steps", "100000", "--resume"});
  wait_for_steps("damaged", static_cast<size_t>(before) + 2);
  ::kill(child, SIGTERM);
  ASSERT_EQ(wait(child), kStopped);
  const auto resumed = events("damaged", "resume");
  ASSERT_EQ(resumed.size(), 1u);
  EXPECT_EQ(resumed[0]["step"], before);
  EXPECT_FALSE(fs::exists(unfinished));
  for (const std::string& state : saved_states(out("damaged"))) inspect_state(state);  // both whole
}

// Killed between its last checkpoint and the last evaluation, a run is complete only with that.
TEST_F(Fit, TheLastEvaluationIsMadeUpFor) {
  const std::vector<std::string> flags{
      "--steps", "2", "--held-out", folder_ + "/made.shard", "--eval-documents", "2"};
  ASSERT_EQ(wait(start("cut", flags)), 0);
  ASSERT_EQ(events("cut", "evaluation").size(), 2u);
  const std::string whole = file_text(out("cut/log.jsonl"));
  const size_t cut = whole.rfind("{\"event\":\"evaluation\"");
  std::ofstream(out("cut/log.jsonl"), std::ios::trunc) << whole.substr(0, cut);
  std::vector<std::string> resumed = flags;
  resumed.push_back("--resume");
  for (int i = 0; i < 2; ++i) {  // the second time there is nothing left to do
    ASSERT_EQ(wait(start("cut", resumed)), 0);
    const auto evaluations = events("cut", "evaluation");
    ASSERT_EQ(evaluations.size(), 2u);
    EXPECT_EQ(evaluations.back()["step"], 2);
    EXPECT_EQ(events("cut", "end").size(), 1u);
  }
}

// What a run began with had been trained, too: its tokens are carried on.
TEST_F(Fit, TokensOfTheStartAreCarriedOn) {
  const auto exported = [&](const std::string& run) {
    EXPECT_EQ(wait(spawn({ORTHRUS_TRAIN_PROGRAM, "export", "-m", tiny_path(), "--run", out(run),
                          "-o", out(run + ".safetensors")})),
              0);
    const Checkpoint base = open_checkpoint(tiny_path());
    return std::stoll(
        open_adapter(out(run + ".safetensors"), base.config).metadata.at("training_tokens"));
  };
  ASSERT_EQ(wait(start("first", {"--steps", "2", "--adapter", "copy"})), 0);
  const int64_t first = exported("first");
  EXPECT_EQ(first, events("first", "step").back()["tokens"]);
  ASSERT_EQ(wait(start("second", {"--steps", "1", "--adapter", out("first.safetensors")})), 0);
  EXPECT_EQ(events("second", "start").at(0)["settings"]["tokens_before"], first);
  EXPECT_EQ(exported("second"), first + events("second", "step").back()["tokens"].get<int64_t>());
}

/// Rewrites what a checkpoint says of itself, at the same length.
void edit(const std::string& path, const std::string& from, const std::string& to) {
  ASSERT_EQ(from.size(), to.size());
  std::string bytes = file_text(path);
  const size_t at = bytes.find(from);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, from.size(), to);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Whatever a checkpoint says that cannot be: the one before it is taken, and training ends.
TEST_F(Fit, AStateThatCannotBeGivesWayToTheOneBefore) {
  for (const auto& [from, to] :
       std::vector<std::pair<std::string, std::string>>{{"\\\"step\\\":3", "\\\"step\\\":-"},
                                                        {"\\\"tokens\\\":", "\\\"Tokens\\\":"},
                                                        {"seconds_bits", "Seconds_bits"},
                                                        {"{\\\"base_hash", "[\\\"base_hash"}}) {
    fs::remove_all(out("odd"));
    ASSERT_EQ(wait(start("odd", {"--steps", "3"})), 0);
    const std::string newest = saved_states(out("odd")).front();
    edit(newest, from, to);
    ASSERT_EQ(wait(start("odd", {"--steps", "3", "--resume"})), 0) << from;
    EXPECT_EQ(events("odd", "resume").at(0)["step"], 2) << from;
    EXPECT_EQ(losses("odd").size(), 3u);
  }
}

// Files of other names are the user's own: neither taken nor removed.
TEST_F(Fit, CopiesOfCheckpointsStay) {
  ASSERT_EQ(wait(start("copies", {"--steps", "3"})), 0);
  const std::string newest = saved_states(out("copies")).front();
  for (const char* name : {"checkpoint-best.safetensors", "checkpoint-00000003.safetensors.bak",
                           "checkpoint-final.safetensors"}) {
    fs::copy_file(newest, out("copies/") + name);
  }
  EXPECT_EQ(saved_states(out("copies")).size(), 2u);
  ASSERT_EQ(wait(start("copies", {"--steps", "3", "--resume"})), 0);
  for (const char* name : {"checkpoint-best.safetensors", "checkpoint-00000003.safetensors.bak",
                           "checkpoint-final.safetensors"}) {
    EXPECT_TRUE(fs::exists(out("copies/") + name)) << name;
  }
  EXPECT_EQ(saved_states(out("copies")).front(), newest);
}

TEST_F(Fit, LinesOfALogThatAreNoStepsAreDropped) {
  ASSERT_EQ(wait(start("log", {"--steps", "2"})), 0);
  std::ofstream(out("log/log.jsonl"), std::ios::app)
      << "{\"event\":\"step\",\"step\":\"x\"}\n{\"event\":5,\"step\":null}\n[]\n";
  ASSERT_EQ(wait(start("log", {"--steps", "2", "--resume"})), 0);
  EXPECT_EQ(losses("log").size(), 2u);
}

TEST_F(Fit, AFolderIsForOneRunAtATime) {
  const pid_t child = start("shared", {"--steps", "100000"});
  wait_for_steps("shared", 1);
  EXPECT_EQ(wait(start("shared", {"--steps", "100000", "--resume"})), 2);
  ::kill(child, SIGTERM);
  EXPECT_EQ(wait(child), kStopped);
}

TEST_F(Fit, TheBlockIsThatOfTheStart) {
  const std::string adapter = out("four.safetensors");
  ASSERT_EQ(wait(start("four", {"--steps", "1", "--block", "4"})), 0);
  ASSERT_EQ(wait(spawn({ORTHRUS_TRAIN_PROGRAM, "export", "-m", tiny_path(), "--run", out("four"),
                        "-o", adapter})),
            0);
  ASSERT_EQ(wait(start("further", {"--steps", "1", "--adapter", adapter})), 0);
  ASSERT_EQ(wait(start("copied", {"--steps", "1", "--adapter", "copy"})), 0);
  EXPECT_EQ(events("further", "start").at(0)["settings"]["block_size"], 4);
  EXPECT_EQ(events("copied", "start").at(0)["settings"]["block_size"], 8);
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

// Answers of the tiny model itself (made by `orthrus-train data`): from fresh copies, a minute of
// CPU time brings the drafts at least halfway to those of the shipped view.
TEST_F(Fit, LongLearningFromCopiesComesHalfwayToTheShippedView) {
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
  const std::clock_t begin = std::clock();
  ASSERT_TRUE(fit(options));
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

  std::vector<Document> documents = read_shard(options.held_out[0]).documents;
  documents.resize(static_cast<size_t>(options.evaluation_documents));
  const auto of = [&](DiffusionSource source) {
    return simulate_cycles(tiny_model(source), documents, 8).tokens_per_cycle();
  };
  const double start = of(DiffusionSource::kCopy), shipped = of(DiffusionSource::kCheckpoint);
  const double learned = last_evaluation(options.out);
  std::printf("tokens per cycle: copies %.3f, learned %.3f in %.0f s of CPU time, shipped %.3f\n",
              start, learned, seconds, shipped);
  EXPECT_LT(seconds, 60);
  EXPECT_GT(shipped, start + 0.5);
  EXPECT_GE(learned, (start + shipped) / 2);
}

/// Drafts of a document that repeats itself, by hand: the cycles of the answer add up to its
/// length.
TEST(Simulation, CyclesCoverTheAnswer) {
  const DualModel model = tiny_model(DiffusionSource::kCheckpoint);
  const Shard data = tiny_documents(3);
  const Simulation s = simulate_cycles(model, data.documents, 8);
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
