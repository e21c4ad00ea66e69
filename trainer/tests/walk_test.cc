// The commands of docs/training.md, "From a base model to a served adapter", on a base model that
// nothing here was made for.
#include <filesystem>
#include <fstream>

#include "base/child_process.h"
#include "formats/json.h"
#include "trainer/data/answers.h"
#include "trainer/tests/random_model.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

class Walk : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
      fs::copy_file(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint/" + name,
                    model_.path() + "/" + name);
    }
    write_prompts("prompts.jsonl", 0, 24);
    write_prompts("held_out.jsonl", 24, 30);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write_prompts(const std::string& name, int first, int last) const {
    std::ofstream file(in(name));
    for (int i = first; i < last; ++i) {
      file << R"({"prompt": "Once there were )" << i << R"( dogs and a cat."})" << '\n';
    }
  }
  std::string in(const std::string& name) const { return folder_ + "/" + name; }
  void run(std::vector<std::string> arguments) const {
    ASSERT_EQ(run_child(arguments).shell_code(), 0) << arguments[0] << " " << arguments[1];
  }
  /// Lines of `orthrus generate` on the held-out prompts: index, tokens, text.
  std::vector<nlohmann::json> generated(std::vector<std::string> flags) const {
    const std::string out = in("generated.jsonl");
    std::vector<std::string> command = {
        orthrus_, "generate", in("held_out.jsonl"), "-o", out, "-m", model_.path(), "-n", "48",
        "--seed", "3"};
    command.insert(command.end(), flags.begin(), flags.end());
    EXPECT_EQ(run_child(command).shell_code(), 0);
    std::vector<nlohmann::json> lines;
    std::ifstream file(out);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    fs::remove(out);
    return lines;
  }

  RandomModel model_{kSmallLlama};
  std::string folder_ = testing::TempDir() + "/orthrus_walk_" + std::to_string(::getpid());
  std::string orthrus_ = default_orthrus_program();
};

TEST_F(Walk, FromABaseModelToAServedAdapter) {
  const std::string trainer = ORTHRUS_TRAIN_PROGRAM;
  run({trainer, "data", "-m", model_.path(), "--prompts", in("prompts.jsonl"), "-o", in("train"),
       "-n", "48", "--batch", "8"});
  run({trainer, "data", "-m", model_.path(), "--prompts", in("held_out.jsonl"), "-o",
       in("held-out"), "-n", "48"});
  run({trainer, "fit", "-m", model_.path(), "--data", in("train"), "--held-out", in("held-out"),
       "-o", in("run"), "--minutes", "0.05", "--device", "cpu"});
  run({trainer, "export", "-m", model_.path(), "--run", in("run"), "--type", "int8", "-o",
       in("adapter.safetensors")});
  run({trainer, "plot", "--run", in("run")});
  EXPECT_TRUE(fs::exists(in("run/report.html")));

  for (const std::string temperature : {"0", "0.8"}) {
    const auto plain = generated({"--view", "ar", "--temp", temperature});
    const auto dual = generated(
        {"--adapter", in("adapter.safetensors"), "--temp", temperature, "--draft-max", "7"});
    ASSERT_EQ(plain.size(), 6u);
    ASSERT_EQ(dual.size(), 6u);
    int64_t tokens = 0;
    for (size_t i = 0; i < plain.size(); ++i) {
      EXPECT_EQ(dual[i].at("token_ids"), plain[i].at("token_ids"));
      tokens += static_cast<int64_t>(plain[i].at("token_ids").size());
    }
    EXPECT_GT(tokens, 100);
  }
  run({orthrus_, "run", "-m", model_.path(), "--adapter", in("adapter.safetensors"), "-n", "8",
       "Hello there."});
}

// scripts/gpu on the CPU, from packed inputs to what comes back, with a tiny budget.
TEST_F(Walk, LongRehearsalOfTheGpuScriptOnTheCpu) {
  const std::string scripts = std::string(ORTHRUS_SOURCE_DIR) + "/scripts/gpu/";
  run({"bash", scripts + "pack.sh", "-o", in("parts"), "--model", model_.path(), "--part-bytes",
       "200K"});
  EXPECT_TRUE(fs::exists(in("parts/inputs.tar.part-01")));
  const auto train = [&](const std::string& parts, const std::string& out,
                         const std::vector<std::string>& extra) {
    std::vector<std::string> command = {"bash",
                                        scripts + "train_smollm2.sh",
                                        "--inputs",
                                        parts,
                                        "--out",
                                        out,
                                        "--device",
                                        "cpu",
                                        "--smoke",
                                        "--binary",
                                        ORTHRUS_TRAIN_PROGRAM,
                                        "--prompts",
                                        in("prompts.jsonl"),
                                        "--held-out",
                                        in("held_out.jsonl")};
    command.insert(command.end(), extra.begin(), extra.end());
    return run_child(command).shell_code();
  };
  ASSERT_EQ(train(in("parts"), in("first"), {}), 0);
  // The same call once more goes on from the work folder, here of a run that is complete.
  fs::rename(in("first/card.json"), in("first_card.json"));
  ASSERT_EQ(train(in("parts"), in("first"), {}), 0);
  EXPECT_EQ(read_json_file(in("first/card.json"), 1 << 20).at("answer_tokens"),
            read_json_file(in("first_card.json"), 1 << 20).at("answer_tokens"));
  size_t files = 0;
  for (const auto& entry : fs::directory_iterator(in("first"))) {
    ++files;
    EXPECT_LE(entry.file_size(), uintmax_t{16} << 20);
  }
  EXPECT_LE(files, 8u);
  for (const char* name :
       {"adapter.safetensors.index.json", "log.jsonl", "report.html", "console.log", "card.json"}) {
    EXPECT_TRUE(fs::exists(in("first/") + name)) << name;
  }
  const nlohmann::json card = read_json_file(in("first/card.json"), 1 << 20);
  EXPECT_GE(std::stoi(card.at("answer_tokens").get<std::string>()), 600);
  EXPECT_GT(card.at("evaluations").back().at("cycles").get<int64_t>(), 10);

  const auto dual = generated({"--adapter", in("first"), "--temp", "0"});
  const auto plain = generated({"--view", "ar", "--temp", "0"});
  ASSERT_EQ(plain.size(), 6u);
  for (size_t i = 0; i < plain.size(); ++i) {
    EXPECT_EQ(dual.at(i).at("token_ids"), plain[i].at("token_ids"));
  }

  ASSERT_EQ(train(in("parts"), in("second"), {"--init", in("first")}), 0);
  EXPECT_EQ(read_json_file(in("second/card.json"), 1 << 20).at("init"), in("first"));

  std::fstream part(in("parts/inputs.tar.part-00"), std::ios::in | std::ios::out);
  part.seekp(5000);
  part << "damaged";
  part.close();
  EXPECT_EQ(train(in("parts"), in("third"), {}), 1);

  run({"bash", scripts + "pack.sh", "-o", in("with_init"), "--model", model_.path(), "--init",
       in("second/adapter.safetensors.index.json")});
  ASSERT_EQ(train(in("with_init"), in("fourth"), {}), 0);
  EXPECT_EQ(read_json_file(in("fourth/card.json"), 1 << 20).at("init"),
            in("fourth-work/inputs/init"));
}

}  // namespace
}  // namespace orthrus::train
