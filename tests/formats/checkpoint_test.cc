#include "formats/checkpoint.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "demo_model.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_names.h"
#include "test_files.h"

namespace orthrus {
namespace {

using testing::read_text;
using testing::TempDir;

const std::string kTiny = std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint";

/// A copy of the tiny checkpoint in which `change` may edit, or drop by emptying its name, each
/// tensor's entry. `extra` goes after them. Data is zeros.
template <typename Change>
void write_changed(const TempDir& dir, Change change,
                   const std::vector<SafetensorsEntry>& extra = {}) {
  dir.write("config.json", read_text(kTiny + "/config.json"));
  const SafetensorsSource source(kTiny);
  std::vector<SafetensorsEntry> entries;
  for (const TensorInfo& tensor : source.tensors()) {
    entries.push_back({tensor.name, tensor.type, tensor.shape});
    change(entries.back());
    if (entries.back().name.empty()) entries.pop_back();
  }
  entries.insert(entries.end(), extra.begin(), extra.end());
  size_t bytes = 0;
  for (const SafetensorsEntry& entry : entries) {
    size_t elements = 1;
    for (int64_t size : entry.shape) elements *= static_cast<size_t>(size);
    bytes += elements * traits(entry.type).block_bytes;
  }
  SafetensorsWriter writer(dir.path() + "/model.safetensors", entries, {});
  writer.append(std::vector<std::byte>(bytes));
  writer.commit();
}

TEST(Checkpoint, TinyOrthrus) {
  const Checkpoint checkpoint = open_checkpoint(kTiny);
  const ModelConfig& c = checkpoint.config;
  EXPECT_TRUE(c.is_orthrus && c.qk_norm && c.tie_word_embeddings);
  EXPECT_EQ(c.vocab_size, 1088);
  EXPECT_EQ(c.hidden_size, 192);
  EXPECT_EQ(c.num_layers, 4);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.block_size, 8);
  EXPECT_EQ(c.mask_token_id, 1024);
  EXPECT_EQ(c.rope.theta, 10000.0);
  EXPECT_EQ(c.eos_token_ids, (std::vector<int32_t>{1023, 1021}));
  EXPECT_EQ(c.sampling.top_p, 0.8);
  EXPECT_EQ(ar_tensors(c).size() + diffusion_tensors(c).size(),
            checkpoint.tensors->tensors().size());
}

TEST(Checkpoint, DemoGguf) {
  const std::string path = testing::demo_model();
  const Checkpoint checkpoint = open_checkpoint(path);
  const ModelConfig& c = checkpoint.config;
  EXPECT_EQ(c.architecture, Architecture::kLlama);
  EXPECT_EQ(c.vocab_size, 49152);
  EXPECT_EQ(c.hidden_size, 576);
  EXPECT_EQ(c.intermediate_size, 1536);
  EXPECT_EQ(c.num_layers, 30);
  EXPECT_EQ(c.num_heads, 9);
  EXPECT_EQ(c.num_kv_heads, 3);
  EXPECT_EQ(c.head_dim, 64);
  EXPECT_EQ(c.max_position_embeddings, 8192);
  EXPECT_EQ(c.rope.theta, 100000.0);
  EXPECT_EQ(c.eos_token_ids, std::vector<int32_t>{2});
  EXPECT_TRUE(c.tie_word_embeddings);
  EXPECT_EQ(ar_tensors(c).size(), 272u);
}

// A file that is there but cannot be opened is never taken for an absent one.
TEST(Checkpoint, OptionalFilesThatCannotBeRead) {
  TempDir dir;
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::filesystem::create_symlink(kTiny + "/" + name, dir.path() + "/" + name);
  }
  EXPECT_TRUE(open_checkpoint(dir.path()).config.sampling.top_p == std::nullopt);
  for (const char* name :
       {"generation_config.json", "model.safetensors.index.json", "config.json"}) {
    const std::string file = dir.path() + "/" + name;
    std::filesystem::remove(file);
    std::filesystem::create_symlink(name, file);  // in a circle
    EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "cannot open " + file + ": Too many levels");
    std::filesystem::remove(file);
    std::filesystem::create_symlink("/no/such/file", file);
    EXPECT_INPUT_ERROR(open_checkpoint(dir.path()),
                       "cannot open " + file + ": a link that leads nowhere");
    std::filesystem::remove(file);
  }
}

TEST(Checkpoint, PathsThatAreNoModel) {
  TempDir dir;
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path() + "/none"), "no such file or directory");
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "a directory without config.json");
  const std::string text = dir.write("notes.txt", "x");
  EXPECT_INPUT_ERROR(open_checkpoint(text), "neither a directory nor a GGUF file");
  EXPECT_INPUT_ERROR(open_checkpoint(dir.write("adapter.safetensors", "x")), "base model");
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "holds an adapter, not a model");
  EXPECT_INPUT_ERROR(open_checkpoint(dir.write("m.gguf", "x")), "not a GGUF file");
  dir.write("config.json", read_text(kTiny + "/config.json"));
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "neither model.safetensors nor");
  dir.write("config.json", std::string((1 << 20) + 1, ' '));
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "expected at most 1048576");
}

TEST(Checkpoint, MissingAndWrongTensorsAreNamed) {
  TempDir dir;
  const std::string q_diff = "model.layers.2.self_attn.q_proj_diff.weight";
  const std::string up = "model.layers.1.mlp.up_proj.weight";
  write_changed(dir, [](SafetensorsEntry&) {});
  EXPECT_EQ(open_checkpoint(dir.path()).tensors->tensors().size(), 70u);
  write_changed(dir, [&](SafetensorsEntry& entry) {
    if (entry.name == q_diff) entry.name = "";
  });
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "tensor " + q_diff + " is missing");
  write_changed(dir, [&](SafetensorsEntry& entry) {
    if (entry.name == q_diff) entry.shape = {192, 256};
  });
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()),
                     "tensor " + q_diff + " has shape [192, 256], expected [256, 192]");
  write_changed(dir, [&](SafetensorsEntry& entry) {
    if (entry.name == up) entry.name = "";
  });
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "tensor " + up + " is missing");
  write_changed(dir, [&](SafetensorsEntry& entry) {
    if (entry.name == up) entry.type = TensorType::kI8;
  });
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "tensor " + up + " has type I8");
  const std::string bias = "model.layers.0.self_attn.q_proj_diff.bias";
  write_changed(dir, [](SafetensorsEntry&) {}, {{bias, TensorType::kBF16, {256}}});
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "tensor " + bias);
}

TEST(Checkpoint, UntiedNeedsLmHead) {
  TempDir dir;
  write_changed(dir, [](SafetensorsEntry&) {});
  auto config = nlohmann::json::parse(read_text(kTiny + "/config.json"));
  config["tie_word_embeddings"] = false;
  dir.write("config.json", config.dump());
  EXPECT_INPUT_ERROR(open_checkpoint(dir.path()), "tensor lm_head.weight is missing");
}

TEST(Checkpoint, BaseHashIgnoresDiffusionTensorsOnly) {
  TempDir one, two, three;
  write_changed(one, [](SafetensorsEntry&) {});
  write_changed(two, [](SafetensorsEntry& entry) {
    if (is_diffusion_tensor(entry.name)) entry.name = "";
  });
  write_changed(three, [](SafetensorsEntry& entry) {
    if (entry.name == "model.norm.weight") entry.type = TensorType::kF16;
  });
  auto hash = [](const TempDir& dir) { return base_hash(SafetensorsSource(dir.path())); };
  EXPECT_EQ(hash(one).size(), 64u);
  EXPECT_EQ(hash(one), hash(two));
  EXPECT_NE(hash(one), hash(three));
  // Same names, types and shapes, other bytes.
  EXPECT_NE(hash(one), base_hash(SafetensorsSource(kTiny)));
  EXPECT_EQ(base_hash(SafetensorsSource(kTiny)),
            "8dff151e863261e0ae8bade21a8cd25496fed0bf5849d788be62efa205009d02");
}

}  // namespace
}  // namespace orthrus
