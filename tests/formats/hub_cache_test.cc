#include "formats/hub_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "orthrus/error.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

/// Sets variables of the environment, and puts them back at the end.
class HubCache : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME"}) {
      set(name, nullptr);
    }
    set("HOME", "/home/somebody");
    std::string pattern = (fs::temp_directory_path() / "hub_cache_XXXXXX").string();
    ASSERT_TRUE(::mkdtemp(pattern.data()));
    folder_ = pattern;
  }

  void TearDown() override {
    for (const auto& [name, value] : before_) {
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
    }
    fs::remove_all(folder_);
  }

  void set(const char* name, const char* value) {
    const char* old = ::getenv(name);
    before_.try_emplace(name, old ? std::optional<std::string>(old) : std::nullopt);
    value ? ::setenv(name, value, 1) : ::unsetenv(name);
  }

  /// A file of the snapshot of o/m.
  void add(const std::string& path) {
    const fs::path place = snapshot() / path;
    fs::create_directories(place.parent_path());
    std::ofstream(place) << "x";
  }

  void set_ref(const std::string& text) {
    fs::create_directories(folder_ / "models--o--m/refs");
    std::ofstream(folder_ / "models--o--m/refs/main") << text;
    set("HF_HUB_CACHE", folder_.c_str());
  }

  fs::path snapshot() const { return folder_ / "models--o--m/snapshots" / commit_; }

  std::string commit_ = std::string(40, 'c');
  fs::path folder_;

 private:
  std::map<std::string, std::optional<std::string>> before_;
};

TEST_F(HubCache, LiesWhereTheVariablesSay) {
  EXPECT_EQ(hub_cache_folder(), "/home/somebody/.cache/huggingface/hub");
  set("XDG_CACHE_HOME", "/xdg");
  EXPECT_EQ(hub_cache_folder(), "/xdg/huggingface/hub");
  set("HF_HOME", "~/hf");
  EXPECT_EQ(hub_cache_folder(), "/home/somebody/hf/hub");
  set("HUGGINGFACE_HUB_CACHE", "/old");
  EXPECT_EQ(hub_cache_folder(), "/old");
  set("HF_HUB_CACHE", "/cache");
  EXPECT_EQ(hub_cache_folder(), "/cache");
  EXPECT_EQ(hub_snapshot_folder("Qwen/Qwen3-0.6B", commit_),
            "/cache/models--Qwen--Qwen3-0.6B/snapshots/" + commit_);
}

TEST_F(HubCache, AModelIsFoundByItsRevision) {
  set("HF_HUB_CACHE", folder_.c_str());
  EXPECT_EQ(find_hub_model({"o/m", ""}), "");
  set_ref(commit_ + "\n");
  EXPECT_EQ(hub_cached_commit("o/m", "main"), commit_);
  EXPECT_EQ(find_hub_model({"o/m", ""}), "");
  add("config.json");  // alone, as other programs leave it
  EXPECT_EQ(find_hub_model({"o/m", ""}), "");
  add("model.safetensors");
  EXPECT_EQ(find_hub_model({"o/m", ""}), snapshot().string());
}

TEST_F(HubCache, AModelOfWhichPartsAreMissingIsNotFound) {
  set_ref(commit_);
  add("config.json");
  add("model-00001-of-00002.safetensors");
  std::ofstream(snapshot() / "model.safetensors.index.json")
      << R"({"weight_map": {"a": "model-00001-of-00002.safetensors",
                            "b": "model-00002-of-00002.safetensors"}})";
  EXPECT_EQ(find_hub_model({"o/m", ""}), "");
  add("model-00002-of-00002.safetensors");
  EXPECT_EQ(find_hub_model({"o/m", ""}), snapshot().string());
}

TEST_F(HubCache, AGgufFileIsFoundByItsType) {
  set_ref(commit_);
  add("sub/M-Q2_K.gguf");
  EXPECT_EQ(find_hub_model({"o/m", ""}), (snapshot() / "sub/M-Q2_K.gguf").string());
  EXPECT_EQ(find_hub_model({"o/m", "q2_k"}), (snapshot() / "sub/M-Q2_K.gguf").string());
  EXPECT_EQ(find_hub_model({"o/m", "Q8_0"}), "");
  add("M-F16.gguf");
  EXPECT_THROW(find_hub_model({"o/m", ""}), Error);
  // A link whose blob somebody removed is no model.
  fs::create_symlink("../../blobs/gone", snapshot() / "M-Q8_0.gguf");
  EXPECT_EQ(find_hub_model({"o/m", "Q8_0"}), "");
}

TEST_F(HubCache, ARefThatIsNoCommitIsRefused) {
  for (const std::string& text : {std::string("../../x"), std::string(), std::string(1000, 'a')}) {
    set_ref(text);
    EXPECT_THROW(find_hub_model({"o/m", ""}), Error) << text;
  }
}

}  // namespace
}  // namespace orthrus
