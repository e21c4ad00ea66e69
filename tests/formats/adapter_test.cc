#include "formats/adapter.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "base/dtype.h"
#include "demo_model.h"
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"
#include "formats/tensor_names.h"
#include "test_files.h"

namespace orthrus {
namespace {

using testing::TempDir;

const std::string kTiny = std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint";

ModelConfig tiny() { return open_checkpoint(kTiny).config; }

/// The diffusion tensors of the tiny checkpoint as an adapter file, `leave_out` left out.
void write_tiny_adapter(const std::string& path, std::map<std::string, std::string> metadata,
                        const std::string& leave_out = "", const std::string& extra = "") {
  const SafetensorsSource source(kTiny);
  std::vector<SafetensorsEntry> entries;
  std::vector<const TensorInfo*> written;
  for (const TensorInfo& tensor : source.tensors()) {
    const bool wanted = is_diffusion_tensor(tensor.name) || tensor.name == extra;
    if (!wanted || tensor.name == leave_out) continue;
    entries.push_back({tensor.name, tensor.type, tensor.shape});
    written.push_back(&tensor);
  }
  SafetensorsWriter writer(path, entries, metadata);
  for (const TensorInfo* tensor : written) writer.append(tensor->data);
  writer.commit();
}

std::vector<float> floats(const TensorInfo& tensor) {
  const size_t size = traits(tensor.type).block_bytes;
  std::vector<float> values(tensor.data.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::byte* at = tensor.data.data() + i * size;
    if (tensor.type == TensorType::kF32) {
      std::memcpy(&values[i], at, 4);
    } else if (tensor.type == TensorType::kBF16) {
      bf16_t bits;
      std::memcpy(&bits, at, 2);
      values[i] = bf16_to_f32(bits);
    } else {
      values[i] = static_cast<float>(std::to_integer<int8_t>(*at));
    }
  }
  return values;
}

TEST(Adapter, OpensAFileAndADirectory) {
  TempDir dir;
  const std::string path = dir.path() + "/adapter.safetensors";
  write_tiny_adapter(path, {{"block_size", "8"},
                            {"mask_token_id", "1024"},
                            {"base", "tiny"},
                            {"base_hash", "abc"},
                            {"format", "pt"}});
  for (const std::string& given : {path, dir.path()}) {
    const Adapter adapter = open_adapter(given, tiny());
    EXPECT_EQ(adapter.path, path);
    EXPECT_EQ(adapter.block_size, 8);
    EXPECT_EQ(adapter.mask_token_id, 1024);
    EXPECT_EQ(adapter.base_hash, "abc");
    EXPECT_EQ(adapter.method, "orthrus");
    EXPECT_EQ(adapter.metadata, (std::map<std::string, std::string>{{"base", "tiny"}}));
    EXPECT_EQ(adapter.tensors->tensors().size(), 24u);
  }
}

TEST(Adapter, Int8IsWithinHalfAStepAndNormsStay) {
  TempDir dir;
  const std::string path = dir.path() + "/a.safetensors", int8 = dir.path() + "/b.safetensors";
  write_tiny_adapter(path, {{"block_size", "8"}, {"mask_token_id", "1024"}, {"note", "x"}});
  const Adapter original = open_adapter(path, tiny());
  write_adapter(original, AdapterType::kInt8, int8);
  const Adapter small = open_adapter(int8, tiny());
  EXPECT_EQ(small.block_size, 8);
  EXPECT_EQ(small.mask_token_id, 1024);
  EXPECT_EQ(small.metadata.at("note"), "x");
  for (const TensorSpec& spec : diffusion_tensors(tiny())) {
    const TensorInfo& before = *original.tensors->find(spec.name);
    const TensorInfo& after = *small.tensors->find(spec.name);
    if (spec.shape.size() == 1) {
      EXPECT_EQ(after.type, TensorType::kBF16);
      EXPECT_EQ(floats(after), floats(before));
      continue;
    }
    ASSERT_EQ(after.type, TensorType::kI8);
    const std::vector<float> w = floats(before), q = floats(after);
    const std::vector<float> scales = floats(*small.tensors->find(spec.name + "_scale"));
    ASSERT_EQ(scales.size(), static_cast<size_t>(spec.shape[0]));
    const size_t width = static_cast<size_t>(spec.shape[1]);
    for (size_t row = 0; row < scales.size(); ++row) {
      float largest = 0, reached = 0;
      for (size_t i = row * width; i < (row + 1) * width; ++i) {
        largest = std::max(largest, std::fabs(w[i]));
        reached = std::max(reached, std::fabs(q[i]));
        ASSERT_LE(std::fabs(q[i] * scales[row] - w[i]), 0.5001f * scales[row]) << spec.name;
      }
      EXPECT_EQ(scales[row], largest / 127.0f);
      EXPECT_EQ(reached, 127.0f);
    }
  }
}

TEST(Adapter, PartsAreTheWholeAgain) {
  TempDir dir;
  const std::string path = dir.path() + "/a.safetensors", parts = dir.path() + "/parts";
  write_tiny_adapter(path, {{"block_size", "8"}, {"mask_token_id", "1024"}, {"note", "x"}});
  const Adapter original = open_adapter(path, tiny());
  write_adapter(original, AdapterType::kInt8, dir.path() + "/whole");
  const Adapter whole = open_adapter(dir.path() + "/whole", tiny());
  write_adapter_parts(original, AdapterType::kInt8, parts, 150'000);
  EXPECT_EQ(adapter_in(parts), parts + "/adapter.safetensors.index.json");
  size_t files = 0;
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(parts)) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files;
    bytes += entry.file_size();
    EXPECT_LE(entry.file_size(), 150'000u);
  }
  EXPECT_GE(files, bytes / 150'000 + 1);
  EXPECT_LE(files, bytes / 75'000 + 1);
  for (const std::string& given : {parts, parts + "/adapter.safetensors.index.json"}) {
    const Adapter read = open_adapter(given, tiny());
    EXPECT_EQ(read.metadata, whole.metadata);
    ASSERT_EQ(read.tensors->tensors().size(), whole.tensors->tensors().size());
    for (const TensorInfo& tensor : whole.tensors->tensors()) {
      EXPECT_TRUE(std::ranges::equal(read.tensors->find(tensor.name)->data, tensor.data));
    }
  }
  ASSERT_LT(files, 10u);
  std::filesystem::remove(parts + "/adapter-00002-of-0000" + std::to_string(files) +
                          ".safetensors");
  EXPECT_INPUT_ERROR(open_adapter(parts, tiny()), "adapter-00002");
}

TEST(Adapter, FormsConvertBothWays) {
  TempDir dir;
  const std::string a = dir.path() + "/a", b = dir.path() + "/b", c = dir.path() + "/c";
  write_tiny_adapter(a, {{"block_size", "8"}, {"mask_token_id", "1024"}});
  write_adapter(open_adapter(a, tiny()), AdapterType::kBf16, b);
  const std::string name = "model.layers.1.self_attn.o_proj_diff.weight";
  EXPECT_EQ(floats(*open_adapter(b, tiny()).tensors->find(name)),
            floats(*SafetensorsSource(kTiny).find(name)));
  write_adapter(open_adapter(a, tiny()), AdapterType::kInt8, b);
  write_adapter(open_adapter(b, tiny()), AdapterType::kInt8, c);
  EXPECT_EQ(testing::read_text(b), testing::read_text(c));
  write_adapter(open_adapter(b, tiny()), AdapterType::kBf16, c);
  const Adapter small = open_adapter(b, tiny()), back = open_adapter(c, tiny());
  EXPECT_EQ(back.tensors->tensors().size(), 24u);
  const std::vector<float> q = floats(*small.tensors->find(name));
  const std::vector<float> scales = floats(*small.tensors->find(name + "_scale"));
  const std::vector<float> values = floats(*back.tensors->find(name));
  for (size_t i = 0; i < q.size(); ++i) {
    ASSERT_EQ(values[i], bf16_to_f32(f32_to_bf16(q[i] * scales[i / 256])));
  }
}

TEST(Adapter, WhatIsWrongIsNamed) {
  TempDir dir;
  const std::string path = dir.path() + "/adapter.safetensors";
  const std::string k = "model.layers.2.self_attn.k_proj_diff.weight";
  const std::map<std::string, std::string> good = {{"block_size", "8"}, {"mask_token_id", "1024"}};
  auto expect = [&](const std::string& part) {
    EXPECT_INPUT_ERROR(open_adapter(path, tiny()), path + ": " + part);
  };
  auto with = [&](const std::string& key, const std::string& value) {
    std::map<std::string, std::string> metadata = good;
    metadata[key] = value;
    write_tiny_adapter(path, metadata);
  };
  write_tiny_adapter(path, good, k);
  expect("tensor " + k + " is missing");
  write_tiny_adapter(path, good, "", "model.norm.weight");
  expect("tensor model.norm.weight does not belong");
  write_tiny_adapter(path, good, "", "model.embed_tokens.weight");
  expect("holds a whole model");
  write_tiny_adapter(path, {{"mask_token_id", "1024"}});
  expect("no metadata block_size");
  write_tiny_adapter(path, {{"block_size", "8"}});
  expect("expected either a tensor mask_embedding or metadata mask_token_id, found neither");
  with("block_size", "8x");
  expect("metadata block_size is \"8x\"");
  with("block_size", "99999999999999999999");
  expect("metadata block_size is");
  with("block_size", "1");
  expect("block_size is 1");
  with("mask_token_id", "1088");
  expect("mask_token_id is 1088");
  with("method", "medusa");
  expect("method \"medusa\"");
  with("base", "other");
  ModelConfig other = tiny();
  other.hidden_size = 384;
  EXPECT_INPUT_ERROR(open_adapter(path, other), "expected [256, 384]");
  EXPECT_INPUT_ERROR(open_adapter(kTiny, tiny()), "without adapter.safetensors");
}

TEST(Adapter, Int8NeedsItsScales) {
  TempDir dir;
  const std::string path = dir.path() + "/a";
  std::vector<SafetensorsEntry> entries;
  size_t bytes = 0;
  for (const TensorSpec& spec : diffusion_tensors(tiny())) {
    const bool matrix = spec.shape.size() == 2;
    entries.push_back({spec.name, matrix ? TensorType::kI8 : TensorType::kF32, spec.shape});
    bytes += static_cast<size_t>(spec.shape[0] * (matrix ? spec.shape[1] : 4));
  }
  SafetensorsWriter writer(path, entries, {{"block_size", "8"}, {"mask_token_id", "0"}});
  writer.append(std::vector<std::byte>(bytes));
  writer.commit();
  EXPECT_INPUT_ERROR(open_adapter(path, tiny()),
                     "tensor model.layers.0.self_attn.q_proj_diff.weight_scale is missing");
}

TEST(Adapter, ShippedAdapterFitsTheDemoModel) {
  const Checkpoint base = open_checkpoint(testing::demo_model());
  const Adapter adapter =
      open_adapter(std::string(ORTHRUS_SOURCE_DIR) + "/models/smollm2-135m", base.config);
  EXPECT_EQ(adapter.block_size, 8);
  EXPECT_EQ(adapter.mask_token_id, -1);
  EXPECT_EQ(adapter.base_hash, base_hash(*base.tensors));
  EXPECT_EQ(adapter.tensors->tensors().size(), 241u);
  EXPECT_EQ(adapter.metadata.at("license"), "apache-2.0");
  EXPECT_EQ(adapter.metadata.at("training_tokens"), "2486352");
}

TEST(SafetensorsWriter, FailureLeavesTheOldFileAlone) {
  TempDir dir;
  const std::string path = dir.write("a.safetensors", "old");
  // A file size limit stands in for a full disk.
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit low = before;
  low.rlim_cur = 100000;
  auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_INPUT_ERROR(write_tiny_adapter(path, {{"block_size", "8"}}),
                     path + ": cannot be written: File too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(testing::read_text(path), "old");
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(dir.path())) ++files;
  EXPECT_EQ(files, 1u);
}

TEST(SafetensorsWriter, PathsThatCannotBeWritten) {
  TempDir dir;
  EXPECT_INPUT_ERROR(SafetensorsWriter(dir.path(), {}, {}), "not a regular file");
  EXPECT_INPUT_ERROR(SafetensorsWriter("/dev/null", {}, {}), "not a regular file");
  EXPECT_INPUT_ERROR(SafetensorsWriter(dir.path() + "/no/a", {}, {}), "No such file");
}

TEST(SafetensorsWriter, DataIsAligned) {
  TempDir dir;
  for (const char* value : {"", "1", "12", "123", "1234", "12345", "\xff"}) {
    const std::string path = dir.path() + "/a";
    SafetensorsWriter writer(path, {{"x", TensorType::kF32, {1}}}, {{"k", value}});
    writer.append(std::vector<std::byte>(4));
    writer.commit();
    EXPECT_EQ((testing::read_text(path).size() - 4) % 8, 0u);
    EXPECT_EQ(SafetensorsSource(path).tensors().size(), 1u);
  }
}

}  // namespace
}  // namespace orthrus
