// What orthrus-train says at the end of its work, and why it refuses some.
#include <sstream>

#include "base/error.h"
#include "cli/terminal.h"
#include "trainer/fit/settings.h"
#include "trainer/tests/program.h"
#include "trainer/tests/random_model.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

using Messages = Program;

// The flag is named where one differs, else what of the prompts does.
TEST_F(Messages, RefusedShardsSayWhichFlagDiffers) {
  const std::string prompts = write("prompts.txt", "Name a river.\nName a town.\n");
  const std::string path = out("made/00000.shard");
  const std::vector<std::string> flags{"--prompts", prompts, "-n", "2"};
  ASSERT_EQ(data("made", flags).code, 0);
  const auto refusal = [&](const std::vector<std::string>& extra) {
    std::vector<std::string> words = flags;
    words.insert(words.end(), extra.begin(), extra.end());
    const Captured run = data("made", words);
    EXPECT_EQ(run.code, 2);
    const size_t at = run.err.find(path + ": made with ");
    EXPECT_NE(at, std::string::npos) << run.err;
    return at == std::string::npos ? run.err : run.err.substr(at + path.size() + 12);
  };
  EXPECT_EQ(refusal({"--temp", "0.5", "--seed", "3"}), "--temp 0, now 0.5; --seed 0, now 3\n");
  EXPECT_EQ(refusal({"--limit", "1"}), "number of prompts (--limit, --exclude) 2, now 1\n");
  EXPECT_EQ(refusal({"--system-prompt", "Be short."})
                .find("text of the prompts (the files, --exclude, --system-prompt): hash "),
            0u);
  EXPECT_EQ(refusal({"--backend", "torch"}), "--backend engine, now \"libtorch on cpu\"\n");
}

TEST_F(Messages, ResultsAreNamed) {
  ASSERT_EQ(wait(start("run", {"--steps", "2", "--held-out", folder_ + "/made.shard",
                               "--eval-documents", "2"})),
            0);
  const auto exported = [&](const std::string& name, const std::vector<std::string>& extra) {
    std::vector<std::string> words{"export",   "-m", tiny_path(), "--run",
                                   out("run"), "-o", out(name)};
    words.insert(words.end(), extra.begin(), extra.end());
    const Captured run = train(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  };
  const std::string origin = fmt::format(" (step 2, {} diffusion tokens)\n",
                                         events("run", "step").back()["tokens"].get<int64_t>());
  const auto size = [&](const std::string& name) {
    return human_bytes(static_cast<double>(fs::file_size(out(name))));
  };
  const std::string whole = exported("a.safetensors", {"--type", "int8"});
  EXPECT_EQ(whole, out("a.safetensors") + ": int8 adapter, " + size("a.safetensors") + origin);
  const std::string parts = exported("parts", {"--part-bytes", "100K"});
  EXPECT_EQ(parts.find(out("parts") + ": bf16 adapter in "), 0u) << parts;
  EXPECT_NE(parts.find(" parts, "), std::string::npos) << parts;
  const std::string checkpoint = exported("whole", {"--type", "checkpoint"});
  EXPECT_EQ(checkpoint, out("whole") +
                            ": whole model in the official layout, its diffusion view bf16, " +
                            size("whole/model.safetensors") + origin);
  const Captured plot = train({"plot", "--run", out("run"), "-o", out("page.html")});
  EXPECT_EQ(plot.code, 0) << plot.err;
  EXPECT_TRUE(plot.out.ends_with("curves: " + out("page.html") + "\n")) << plot.out;
}

// What docs/training.md says of the shipped run is what its log says.
TEST_F(Messages, TheTableOfTheDocumentationIsThatOfTheShippedLog) {
  const std::string source = ORTHRUS_SOURCE_DIR;
  const Captured plot =
      train({"plot", "--run", source + "/models/smollm2-135m", "-o", out("page.html")});
  ASSERT_EQ(plot.code, 0) << plot.err;
  std::string table;
  std::istringstream lines(plot.out);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" tokens: ") != std::string::npos) break;  // the forecast
    table += "    " + line + "\n";
  }
  EXPECT_NE(table.find("2.49M"), std::string::npos) << table;
  EXPECT_NE(file_text(source + "/docs/training.md").find(table), std::string::npos) << table;
}

TEST_F(Messages, ARunSaysHowItHasEnded) {
  std::vector<std::string> words{"fit",
                                 "-m",
                                 tiny_path(),
                                 "--data",
                                 folder_ + "/made.shard",
                                 "--held-out",
                                 folder_ + "/made.shard",
                                 "-o",
                                 out("run"),
                                 "--row-tokens",
                                 "90",
                                 "--row-blocks",
                                 "10",
                                 "--eval-documents",
                                 "2",
                                 "--steps",
                                 "3"};
  const Captured first = train(words);
  ASSERT_EQ(first.code, 0) << first.err;
  const auto last = events("run", "evaluation").back();
  EXPECT_NE(first.err.find("on 2 held-out documents (mean of the documents "), std::string::npos)
      << first.err;
  const std::string end = fmt::format(
      "complete after step 3 (100 % of 3 steps): {} diffusion tokens, {:.3f} tokens/cycle at the "
      "last evaluation; saved: {}/checkpoint-00000003.safetensors\nnext: orthrus-train export -m "
      "{} "
      "--run {} -o adapter.safetensors\n",
      events("run", "step").back()["tokens"].get<int64_t>(), last["tokens_per_cycle"].get<double>(),
      out("run"), tiny_path(), out("run"));
  EXPECT_TRUE(first.err.ends_with(end)) << first.err << "\nexpected\n" << end;
  words.push_back("--resume");
  const Captured again = train(words);
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.err.find("goes on"), std::string::npos) << again.err;
  EXPECT_NE(again.err.find("run: the run is complete; to train further begin another one"),
            std::string::npos)
      << again.err;
  EXPECT_TRUE(again.err.ends_with(end)) << again.err;
  words.insert(words.end(), {"--lr", "0.5"});
  const Captured other = train(words);
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("the run was begun with --lr = 0.001, now it is 0.5\n"),
            std::string::npos)
      << other.err;
}

// A setting is named by its flag in messages; such a flag must be there.
TEST_F(Messages, SettingsAreNamedByTheirFlags) {
  ASSERT_EQ(wait(start("run", {"--steps", "1"})), 0);
  const std::string help = train({"fit", "--help"}).out;
  const auto settings = events("run", "start").at(0)["settings"];
  int named = 0;
  for (const auto& [key, value] : settings.items()) {
    nlohmann::ordered_json other = settings;
    other[key] = "other";
    try {
      require_same_settings(other, settings.dump(), "here");
      FAIL() << key;
    } catch (const Error& error) {
      const std::string message = error.what();
      const size_t begin = message.find("with --");
      if (begin == std::string::npos) continue;  // beta1 and beta2 have none
      const std::string flag = message.substr(begin + 5, message.find(' ', begin + 5) - begin - 5);
      EXPECT_NE(help.find(flag + " "), std::string::npos) << message;
      ++named;
    }
  }
  EXPECT_EQ(named, static_cast<int>(settings.size()) - 2);
}

TEST_F(Messages, AnAdapterOfAnotherBaseIsRefusedByItsHash) {
  ASSERT_EQ(wait(start("run", {"--steps", "1"})), 0);
  const std::string adapter = out("a.safetensors");
  ASSERT_EQ(train({"export", "-m", tiny_path(), "--run", out("run"), "-o", adapter}).code, 0);
  const RandomModel other(kSmallLlama);
  const Captured run = train({"fit", "-m", other.path(), "--adapter", adapter, "--data",
                              folder_ + "/made.shard", "-o", out("other"), "--steps", "1"});
  EXPECT_EQ(run.code, 1);
  const auto text = [](const std::string& path) {
    return fmt::format("{} (hash {})", fs::path(path).filename().string(),
                       base_hash(*open_checkpoint(path).tensors).substr(0, 12));
  };
  const std::string expected =
      fmt::format("{}: trained on another base: expected {}, found {} in {}\n", adapter,
                  text(tiny_path()), text(other.path()), other.path());
  EXPECT_NE(run.err.find(expected), std::string::npos) << run.err << "\nexpected\n" << expected;
  EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
}

}  // namespace
}  // namespace orthrus::train
