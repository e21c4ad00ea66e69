#include "cli/config_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "cli/options.h"
#include "orthrus/error.h"

namespace orthrus {
namespace {

const std::vector<std::string> kAllFlags = {"temp",
                                            "ctx-size",
                                            "budget",
                                            "stop",
                                            "consensus",
                                            "prefill-batch-size",
                                            "decode-batch-size",
                                            "kv-cache-memory-budget-gb",
                                            "memory-utilization-target",
                                            "dynamic-adjust-interval-ms"};

class ConfigFile : public testing::Test {
 protected:
  ConfigFile() {
    add_model_flags(app_, model_);
    add_generation_flags(app_, generation_);
    add_template_flags(app_, prompt_);
  }
  ~ConfigFile() override { ::unlink(path_.c_str()); }

  void apply(const std::string& text, std::vector<std::string> arguments = {}) {
    std::ofstream(path_) << text;
    app_.parse(std::move(arguments));
    apply_config_file(path_, app_, kAllFlags);
  }

  std::string error_of(const std::string& text) {
    try {
      apply(text);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  CLI::App app_;
  ModelFlags model_;
  GenerationFlags generation_;
  PromptFlags prompt_;
  std::string path_ = testing::TempDir() + "orthrus-config-" + std::to_string(::getpid());
};

TEST_F(ConfigFile, SetsFlagsByTheirLongNames) {
  apply(
      "temp: 0.5\ntop_k: 20\nstop: [END, \"\\n\\n\"]\nignore-eos: true\nlogit_bias: [7+1, 9-inf]\n"
      "chat_template_kwargs: {enable_thinking: false, depth: 2, name: \"2\"}\n");
  EXPECT_EQ(generation_.temperature, 0.5);
  EXPECT_EQ(generation_.top_k, 20);
  EXPECT_EQ(generation_.stop, (std::vector<std::string>{"END", "\n\n"}));
  EXPECT_TRUE(generation_.ignore_eos);
  EXPECT_EQ(generation_.logit_bias, (std::vector<std::string>{"7+1", "9-inf"}));
  EXPECT_EQ(prompt_.template_kwargs, R"({"depth":2,"enable_thinking":false,"name":"2"})");
}

TEST_F(ConfigFile, TakesJson) {
  apply(R"({"temp": 1.25, "consensus": "kl", "seed": 7})");
  EXPECT_EQ(generation_.temperature, 1.25);
  EXPECT_EQ(generation_.consensus, "kl");
  EXPECT_EQ(generation_.seed, 7);
}

TEST_F(ConfigFile, TheCommandLineWins) {
  apply("temp: 0.5\nmax_seq_len: 512\n", {"0.9", "--temp"});  // CLI11 takes them reversed
  EXPECT_EQ(generation_.temperature, 0.9);
  EXPECT_EQ(model_.context, 512);
}

TEST_F(ConfigFile, TakesTheArticlesKeys) {
  testing::internal::CaptureStdout();  // spdlog's default logger
  apply(
      "prefill_batch_size: 16\ndecode_batch_size: 8\nmax_seq_len: 2048\n"
      "kv_cache_memory_budget_gb: 40\nmemory_utilization_target: 0.75\n"
      "dynamic_adjust_interval_ms: 500\nconsensus_threshold: 0.02\nuse_diffusion_mode: false\n"
      "budget: 3\n");
  const std::string notice = testing::internal::GetCapturedStdout();
  EXPECT_EQ(model_.context, 2048);
  EXPECT_EQ(generation_.consensus_threshold, 0.02);
  EXPECT_EQ(model_.view, "ar");
  EXPECT_NE(notice.find("without effect here: prefill_batch_size, decode_batch_size, "
                        "kv_cache_memory_budget_gb, memory_utilization_target, "
                        "dynamic_adjust_interval_ms, budget"),
            std::string::npos)
      << notice;
}

TEST_F(ConfigFile, NamesUnknownKeysAndTheNearest) {
  EXPECT_NE(error_of("tmep: 1").find("unknown key tmep (the nearest is temp)"), std::string::npos);
  EXPECT_NE(error_of("prefil_batch_size: 1").find("prefill-batch-size"), std::string::npos);
  EXPECT_NE(error_of("colour: red").find("unknown key colour: keys are the long names"),
            std::string::npos);
}

TEST_F(ConfigFile, RefusesWrongValues) {
  EXPECT_NE(error_of("temp: hot").find("temp: "), std::string::npos);
  EXPECT_NE(error_of("consensus: maybe").find("consensus: "), std::string::npos);
  EXPECT_NE(error_of("top_k: 2.5").find("top_k: "), std::string::npos);
  EXPECT_NE(error_of("stop: [[a]]").find("expected a list of plain values"), std::string::npos);
  EXPECT_NE(error_of("use_diffusion_mode: 3").find("expected true or false"), std::string::npos);
}

TEST_F(ConfigFile, RefusesAKeyThatIsSetTwice) {
  EXPECT_NE(error_of("temp: 1\ntemperature: 2").find("temperature is set twice"),
            std::string::npos);
  EXPECT_NE(error_of("top-k: 1\ntop_k: 1").find("top_k is set twice"), std::string::npos);
  EXPECT_NE(error_of("budget: 1\nbudget: 1").find("budget is set twice"), std::string::npos);
  EXPECT_NE(error_of("temp: 1\ntemp:").find("temp is set twice"), std::string::npos);
  for (const char* empty : {"temp:", "temp: null", "temp: []", R"({"temp": null})"}) {
    EXPECT_NE(error_of(empty).find("temp: expected a value, found none"), std::string::npos)
        << empty;
  }
  for (const char* both :
       {"view: ar\nuse_diffusion_mode: true", "use_diffusion_mode: true\nview: ar"}) {
    EXPECT_NE(error_of(both).find("is set twice, the first time by another name"),
              std::string::npos)
        << both;
  }
  EXPECT_NE(error_of(R"({"seed": 1, "seed": 2})").find("seed is set twice"), std::string::npos);
  EXPECT_NE(error_of("chat_template_kwargs: {a: 1, b: {c: 1, c: 2}}").find("c is set twice"),
            std::string::npos);
}

TEST_F(ConfigFile, RefusesAMapThatIsNotUtf8) {
  EXPECT_NE(error_of("chat_template_kwargs: {a: \"x\xC3n\"}")
                .find("chat_template_kwargs: expected UTF-8"),
            std::string::npos);
}

TEST_F(ConfigFile, RefusesControlCharacters) {
  EXPECT_NE(error_of(std::string("seed: 1\n, name: \x01\0\0\0\0\0\0", 24))
                .find(":2: byte 1, expected text"),
            std::string::npos);
  EXPECT_NE(error_of("temp: \x7f").find(":1: byte 127, expected text"), std::string::npos);
}

TEST_F(ConfigFile, RefusesASecondDocument) {
  const std::string refusal = "more than one YAML document, expected one";
  EXPECT_NE(error_of("temp: 1\n---\ntop_k: 2\n").find(refusal), std::string::npos);
  // yaml-cpp's own LoadAll reads this for ever.
  EXPECT_NE(error_of(",temp: 1\n").find(refusal), std::string::npos);
  EXPECT_EQ(error_of("---\ntemp: 1\n"), "no error");
  EXPECT_EQ(error_of("# nothing\n"), "no error");
}

TEST_F(ConfigFile, RefusesWhatIsNoConfig) {
  EXPECT_NE(error_of("temp: [1").find("not YAML or JSON"), std::string::npos);
  EXPECT_NE(error_of("just words").find("expected keys and values"), std::string::npos);
  EXPECT_NE(error_of("? [a]\n: 1").find("not a plain word"), std::string::npos);
  EXPECT_NE(error_of("a: &a [1]\nb: *c").find("not YAML or JSON"), std::string::npos);
}

TEST_F(ConfigFile, BoundsWhatAliasesUnfoldTo) {
  std::string text = "x0: &x0 [a, a]\n";
  for (int i = 1; i < 12; ++i) {
    text += "x" + std::to_string(i) + ": &x" + std::to_string(i) + " [";
    for (int j = 0; j < 8; ++j) text += (j ? ", *x" : "*x") + std::to_string(i - 1);
    text += "]\n";
  }
  std::string flat = "chat_template_kwargs: {";
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    flat += text.substr(at, end - at) + ", ";
  }
  EXPECT_NE(error_of(flat + "y: 1}\n").find("nested too deeply, or too large"), std::string::npos);
  const std::string large(300'000, 'x');
  for (const std::string& file : {"stop: [&a " + large + ", *a, *a, *a]",
                                  "chat_template_kwargs: {a: [&a " + large + ", *a, *a, *a]}"}) {
    EXPECT_NE(error_of(file).find("nested too deeply, or too large"), std::string::npos);
  }
}

}  // namespace
}  // namespace orthrus
