// orthrus-train as a person uses it, on the tiny checkpoint.
#include "trainer/tests/program.h"

#include <fmt/format.h>

#include "text/tokenizer.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

class Data : public Program {
 protected:
  /// Text of the prompts, template included, in the shards of that folder.
  std::vector<std::string> prompts_in(const std::string& name) const {
    const Tokenizer tokenizer = Tokenizer::load(tiny_path());
    std::vector<std::string> result;
    for (const Document& d : read_shards({out(name)}).documents) {
      const auto end = d.tokens.begin() + (d.answers.empty() ? 0 : d.answers[0].begin);
      result.push_back(tokenizer.decode(std::vector<int32_t>(d.tokens.begin(), end)));
    }
    return result;
  }
};

TEST_F(Data, LimitAndExcludeChooseThePrompts) {
  const std::string prompts = write("prompts.jsonl",
                                    "{\"prompt\": \"How many legs have two dogs?\"}\n"
                                    "{\"prompt\": \"How many eyes have three cats?\"}\n"
                                    "{\"prompt\": \"How many wings have four birds?\"}\n"
                                    "{\"prompt\": \"How many arms have five men?\"}\n");
  const std::string text = write("prompts.txt", "Name a river.\n\nName a town.\n");
  const std::string held_out = write("held_out.txt", "how many EYES have three cats\n");
  const Captured run = data("chosen", {"--prompts", prompts, "--prompts", text, "--exclude",
                                       held_out, "--limit", "3", "-n", "4"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find(": 4 documents, 16 answer tokens"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("1 prompts left out"), std::string::npos) << run.err;
  const auto chosen = prompts_in("chosen");
  ASSERT_EQ(chosen.size(), 4u);
  const std::vector<std::string> expected{"two dogs?", "four birds?", "a river.", "a town."};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NE(chosen[i].find(expected[i] + "<|im_end|>"), std::string::npos) << chosen[i];
  }
}

TEST_F(Data, ASystemPromptStandsInFrontOfTexts) {
  const std::string text = write("prompts.txt", "Name a river.\n");
  const Captured run =
      data("system", {"--prompts", text, "--system-prompt", "Be short.", "-n", "4"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto prompts = prompts_in("system");
  ASSERT_EQ(prompts.size(), 1u);
  EXPECT_NE(prompts[0].find("<|im_start|>system\nBe short.<|im_end|>\n<|im_start|>user\nName a"),
            std::string::npos)
      << prompts[0];
}

TEST_F(Data, SelfPromptsAreWrittenOnce) {
  const std::vector<std::string> flags{"--self-prompts",      "3",        "-n",      "4",
                                       "--self-prompt-start", "John has", "--batch", "32"};
  const Captured run = data("self", flags);
  ASSERT_EQ(run.code, 0) << run.err;
  const std::string written = file_text(out("self/self-prompts.json"));
  const auto prompts = prompts_in("self");
  ASSERT_EQ(prompts.size(), 3u);
  for (const std::string& prompt : prompts) {
    EXPECT_NE(prompt.find("<|im_start|>user\nJohn has"), std::string::npos) << prompt;
    EXPECT_TRUE(prompt.ends_with("<|im_end|>\n<|im_start|>assistant\n")) << prompt;
  }
  // Without its shards the same call makes the same documents of the same texts.
  const std::string shard = file_text(out("self/00000.shard"));
  fs::remove(out("self/00000.shard"));
  const auto time = fs::last_write_time(out("self/self-prompts.json"));
  ASSERT_EQ(data("self", flags).code, 0);
  EXPECT_EQ(fs::last_write_time(out("self/self-prompts.json")), time);
  EXPECT_EQ(file_text(out("self/self-prompts.json")), written);
  EXPECT_EQ(file_text(out("self/00000.shard")), shard);
  std::vector<std::string> more = flags;
  more[1] = "4";
  const Captured refused = data("self", more);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("self-prompts.json: made with --self-prompts 3, now 4\n"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(file_text(out("self/00000.shard")), shard);
}

TEST_F(Data, OnlyMissingShardsAreMadeAndTheyAreTheSame) {
  const std::vector<std::string> flags{"--prompts",         questions_, "--limit", "5",
                                       "--shard-documents", "2",        "-n"};
  const auto with = [&](const std::string& tokens) {
    std::vector<std::string> words = flags;
    words.push_back(tokens);
    return words;
  };
  ASSERT_EQ(data("shards", with("6")).code, 0);
  std::vector<std::string> names, bytes;
  std::vector<fs::file_time_type> times;
  for (const char* name : {"00000", "00001", "00002"}) {
    names.push_back(out("shards/") + name + ".shard");
    bytes.push_back(file_text(names.back()));
    EXPECT_FALSE(bytes.back().empty());
    times.push_back(fs::last_write_time(names.back()));
  }
  fs::remove(names[1]);
  const Captured resumed = data("shards", with("6"));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("2 of 2 answers"), std::string::npos) << resumed.err;
  for (const size_t i : {0, 1, 2}) {
    EXPECT_EQ(file_text(names[i]), bytes[i]) << names[i];
    EXPECT_EQ(fs::last_write_time(names[i]) == times[i], i != 1) << names[i];
  }
  const Captured other = data("shards", with("7"));
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("00000.shard: made with --max-tokens 6, now 7\n"), std::string::npos)
      << other.err;
  EXPECT_EQ(file_text(names[0]), bytes[0]);
}

// Other weights in the same folder: nothing is taken over, and nothing generated for hours first.
TEST_F(Data, ShardsOfAnotherModelAreRefused) {
  const std::string prompts = write("prompts.txt", "Name a river.\r\n\r\nName a town.\r\n");
  const std::vector<std::string> flags{"--prompts", prompts, "-n", "4", "--shard-documents", "1"};
  const Captured first = data("answers", flags);
  ASSERT_EQ(first.code, 0) << first.err;
  ASSERT_EQ(prompts_in("answers").size(), 2u);  // the blank line is none
  EXPECT_EQ(prompts_in("answers")[0].find('\r'), std::string::npos);
  Shard other = read_shard(out("answers/00000.shard"));
  other.base_hash[0] ^= 1;
  write_shard(out("answers/00000.shard"), other);
  fs::remove(out("answers/00001.shard"));
  const Captured again = data("answers", flags);
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("00000.shard: made by another model"), std::string::npos) << again.err;
  EXPECT_FALSE(fs::exists(out("answers/00001.shard")));
}

TEST_F(Program, MessagesAreWhole) {
  const std::string name = std::string(180, 'x') + "\xc3\xa9";
  const Captured run = train({"plot", "--run", out(name)});
  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find(name + "/log.jsonl: cannot be read"), std::string::npos) << run.err;
}

// Progress that nobody can read is no reason to stop.
TEST_F(Program, AClosedStderrDoesNotEndARun) {
  const std::string command = fmt::format(
      "{} fit -m {} --data {}/made.shard --held-out {}/made.shard --eval-documents 1 --row-tokens "
      "90 "
      "--row-blocks 10 --steps 2 -o ",
      ORTHRUS_TRAIN_PROGRAM, tiny_path(), folder_, folder_);
  for (const char* streams : {"2>/dev/full", "2>&-", "2>&1 | head -c 1 >/dev/null"}) {
    fs::remove_all(out("quiet"));
    const std::string line = command + out("quiet") + " " + streams;
    EXPECT_EQ(wait(spawn({"/bin/bash", "-o", "pipefail", "-c", line})), 0) << streams;
    EXPECT_EQ(events("quiet", "end").size(), 1u) << streams;
  }
}

TEST_F(Program, AResultThatCannotBeWrittenIsAnError) {
  ASSERT_EQ(wait(start("run", {"--steps", "1"})), 0);
  const std::string trainer = ORTHRUS_TRAIN_PROGRAM;
  for (const std::string& command :
       {trainer + " plan --shape qwen3-8b", trainer + " plot --run " + out("run")}) {
    for (const char* stream : {" >/dev/full", " >&-"}) {
      EXPECT_EQ(wait(spawn({"/bin/bash", "-c", command + stream})), 1) << command << stream;
    }
  }
  // A limit of the file size is an error of the write, not a signal.
  EXPECT_EQ(wait(spawn({"/bin/bash", "-c",
                        "ulimit -f 100; " + trainer + " export -m " + tiny_path() + " --run " +
                            out("run") + " -o " + out("a.safetensors")})),
            1);
  EXPECT_FALSE(fs::exists(out("a.safetensors")));
}

TEST_F(Program, OutputsDoNotTakeThePlaceOfInputs) {
  ASSERT_EQ(wait(start("run", {"--steps", "1"})), 0);
  const std::string log = out("run/log.jsonl"), before = file_text(log);
  EXPECT_EQ(train({"plot", "--run", out("run"), "-o", log}).code, 2);
  EXPECT_EQ(file_text(log), before);
  EXPECT_EQ(train({"plot", "--run", out("run"), "-o", "/dev/null"}).code, 1);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  fs::copy(tiny_path(), out("base"));
  const std::string checkpoint = out("run/checkpoint-00000001.safetensors");
  for (const std::string& input : {checkpoint, out("base/model.safetensors"), out("base")}) {
    const auto bytes = fs::is_directory(input) ? std::string() : file_text(input);
    const Captured run = train({"export", "-m", out("base"), "--run", out("run"), "-o", input});
    EXPECT_EQ(run.code, 2) << run.err;
    const auto now = fs::is_directory(input) ? std::string() : file_text(input);
    EXPECT_TRUE(now == bytes) << input;
  }
  EXPECT_EQ(train({"export", "-m", out("base"), "--run", out("run"), "-o",
                   out("base/adapter.safetensors")})
                .code,
            0);
}

TEST_F(Program, WrongFlagsAreOneLine) {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"bogus"},
           {"fitt"},
           {"fit", "-m", tiny_path(), "--data", folder_, "-o", out("x"), "--steps", "-1"},
           {"fit", "-m", tiny_path(), "--data", folder_, "-o", out("x"), "--seed",
            "18446744073709551616"},
           {"export", "-m", tiny_path(), "--run", out("x"), "-o", out("y"), "--part-bytes", "-5"},
           {"export", "-m", tiny_path(), "--run", out("x"), "-o", out("y"), "--metadata", "=x"},
           {"data", "-m", tiny_path(), "-o", out("x"), "--self-prompts", "9223372036854775807"}}) {
    const Captured run = train(words);
    EXPECT_EQ(run.code, 2) << words.back();
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
    EXPECT_LT(run.err.size(), 200u) << run.err;
  }
  EXPECT_NE(train({"fitt"}).err.find("unknown command fitt (the nearest is fit)"),
            std::string::npos);
  const Captured name = train({"plot", "--run", "a\nb"});
  EXPECT_NE(name.err.find("a b/log.jsonl: cannot be read"), std::string::npos) << name.err;
}

// Set before libtorch's BLAS looks at the CPU, unless the user has set it.
TEST_F(Program, TheRightBlasKernelsAreAskedFor) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "needs AVX-512";
  for (const bool given : {false, true}) {
    std::vector<std::string> variables;
    if (given) variables.push_back("OPENBLAS_CORETYPE=Haswell");
    ::unsetenv("OPENBLAS_CORETYPE");
    const pid_t child = start(given ? "given" : "chosen", {"--steps", "100000"}, variables);
    wait_for_steps(given ? "given" : "chosen", 1);
    const std::string environment = file_text(fmt::format("/proc/{}/environ", child));
    EXPECT_NE(environment.find(given ? "OPENBLAS_CORETYPE=Haswell" : "OPENBLAS_CORETYPE=SkylakeX"),
              std::string::npos);
    ::kill(child, SIGKILL);
    wait(child);
  }
}

TEST_F(Program, PlanPrintsTheTableOfTheDocumentation) {
  const Captured plan = train({"plan", "--shape", "smollm2-135m", "--gflops", "240"});
  ASSERT_EQ(plan.code, 0) << plan.err;
  EXPECT_NE(plan.out.find("smollm2-135m: 384 diffusion tokens a row of 384 tokens, "
                          "0.84 GFLOP a diffusion token"),
            std::string::npos)
      << plan.out;
  EXPECT_NE(plan.out.find("3000000 diffusion tokens at 240 GFLOP/s: 2.9"), std::string::npos)
      << plan.out;
  EXPECT_NE(train({"plan", "--shape", "qwen3-8b"}).out.find(", 47.96 "), std::string::npos);
}

TEST_F(Program, PlanOfAnUnknownShapeIsOneLine) {
  const Captured plan = train({"plan", "--shape", "smollm3"});
  EXPECT_EQ(plan.code, 2);
  EXPECT_EQ(plan.out, "");
  EXPECT_NE(plan.err.find("unknown shape smollm3: expected one of qwen3-0.6b"), std::string::npos);
  EXPECT_EQ(plan.err.find('\n'), plan.err.size() - 1) << plan.err;
}

TEST_F(Program, CtrlCSavesAndTheRunGoesOn) {
  const pid_t child = start("stopped", {"--steps", "100000"});
  wait_for_steps("stopped", 3);
  ::kill(child, SIGINT);
  EXPECT_EQ(wait(child), kStopped);
  const auto last = losses("stopped").back().first;
  EXPECT_TRUE(fs::exists(fmt::format("{}/checkpoint-{:08}.safetensors", out("stopped"), last)));
  // Its schedule is one of 100000 steps: the same call goes on behind the step it saved.
  const pid_t resumed = start("stopped", {"--steps", "100000", "--resume"});
  wait_for_steps("stopped", static_cast<size_t>(last) + 2);
  ::kill(resumed, SIGINT);
  EXPECT_EQ(wait(resumed), kStopped);
  const auto steps = losses("stopped");
  for (size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i].first, static_cast<int64_t>(i) + 1);
  }
}

// What a run says of held-out prompts is what `orthrus eval` measures on them with its export. Most
// of the documents are longer than the rows that are trained on.
TEST_F(Program, HeldOutEvaluationIsThatOfOrthrusEval) {
  const std::vector<std::string> prompts{"--prompts", questions_, "--limit", "16", "-n", "128"};
  ASSERT_EQ(data("held-out", prompts).code, 0);
  ASSERT_EQ(wait(start("run", {"--steps", "4", "--held-out", out("held-out"), "--eval-documents",
                               "1000"})),
            0);
  ASSERT_EQ(
      train({"export", "-m", tiny_path(), "--run", out("run"), "-o", out("a.safetensors")}).code,
      0);
  std::vector<std::string> words{default_orthrus_program(),
                                 "eval",
                                 "-m",
                                 tiny_path(),
                                 "--adapter",
                                 out("a.safetensors"),
                                 "--weights",
                                 "f32",
                                 "--draft-weights",
                                 "same",
                                 "--json"};
  words.insert(words.end(), prompts.begin(), prompts.end());
  const Captured eval = captured_run(words);
  ASSERT_EQ(eval.code, 0) << eval.err;
  const auto measured = nlohmann::json::parse(eval.out);
  const auto evaluations = events("run", "evaluation");
  ASSERT_EQ(evaluations.size(), 2u);
  const nlohmann::json& said = evaluations.back();
  EXPECT_EQ(said["step"], 4);
  EXPECT_EQ(said["documents"], 16);
  EXPECT_EQ(measured["prompts"], 16);
  const double expected = measured["token_weighted"]["tokens_per_cycle"];
  EXPECT_GT(expected, 1.5);  // drafts are accepted at all
  EXPECT_NE(said["tokens_per_cycle"], evaluations.front()["tokens_per_cycle"]);
  EXPECT_NEAR(said["tokens_per_cycle"].get<double>() / expected, 1, 0.01);
  const double mean = measured["per_prompt_mean"]["tokens_per_cycle"];
  EXPECT_NEAR(said["tokens_per_cycle_mean"].get<double>() / mean, 1, 0.01);
}

}  // namespace
}  // namespace orthrus::train
