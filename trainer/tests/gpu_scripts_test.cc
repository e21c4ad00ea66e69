// What scripts/gpu say before any work begins.
#include "trainer/tests/captured_run.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

class GpuScripts : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_ + "/parts-of"); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const {
    std::ofstream(folder_ + "/" + name) << name;
    return folder_ + "/" + name;
  }
  Captured script(const std::string& name, std::vector<std::string> words) const {
    words.insert(words.begin(), {"bash", std::string(ORTHRUS_SOURCE_DIR) + "/scripts/gpu/" + name});
    return captured_run(words);
  }
  Captured pack(const std::string& init) const {
    return script("pack.sh", {"-o", folder_ + "/packed", "--init", init});
  }
  /// Names in what was packed, in order.
  std::string packed() const {
    return captured_run(
               {"sh", "-c", "cat '" + folder_ + "'/packed/inputs.tar.part-* | tar -tf - | sort"})
        .out;
  }

  std::string folder_ = testing::TempDir() + "/orthrus_gpu_" + std::to_string(::getpid());
};

TEST_F(GpuScripts, AnAdapterToGoOnFromIsAFileOrAFolder) {
  ASSERT_EQ(pack(file("mine.safetensors")).code, 0);
  EXPECT_EQ(packed(), "inputs/\ninputs/init/\ninputs/init/adapter.safetensors\n");

  const std::string index = file("parts-of/adapter.safetensors.index.json");
  file("parts-of/adapter-00001-of-00001.safetensors");
  file("parts-of/console.log");
  const std::string expected =
      "inputs/\ninputs/init/\ninputs/init/adapter-00001-of-00001.safetensors\n"
      "inputs/init/adapter.safetensors.index.json\n";
  for (const std::string& init : {folder_ + "/parts-of", index}) {
    ASSERT_EQ(pack(init).code, 0);
    EXPECT_EQ(packed(), expected);
  }
}

TEST_F(GpuScripts, WhatIsNoAdapterIsOneLine) {
  for (const std::string& init : {std::string("/dev/null"), folder_ + "/none", folder_}) {
    const Captured run = pack(init);
    EXPECT_EQ(run.code, 1);
    EXPECT_NE(run.err.find("pack: --init " + init + ": "), std::string::npos) << run.err;
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
  }
  const Captured train = script("train_smollm2.sh", {"--out", folder_ + "/out", "--model", folder_,
                                                     "--init", folder_ + "/none"});
  EXPECT_EQ(train.code, 1);
  EXPECT_EQ(train.out, "train: --init " + folder_ + "/none: no adapter\n");
}

TEST_F(GpuScripts, UnknownDevicesAreRefusedAtOnce) {
  const Captured run = script(
      "train_smollm2.sh", {"--out", folder_ + "/out", "--model", folder_, "--device", "cuda:x"});
  EXPECT_EQ(run.code, 1);
  EXPECT_EQ(run.err, "train: --device cuda:x: expected cpu, cuda or cuda:N\n");
  EXPECT_FALSE(fs::exists(folder_ + "/out"));
}

}  // namespace
}  // namespace orthrus::train
