#include "model/packed_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "formats/checkpoint.h"
#include "formats/test_files.h"
#include "model/weights.h"

namespace orthrus {
namespace {

using testing::input_error;
using testing::read_text;
using testing::TempDir;

LoadedTensors load_tiny(WeightFormat format, ThreadPool& pool) {
  const Checkpoint checkpoint =
      open_checkpoint(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint");
  LoadedTensors record;
  LoadRequest request;
  request.format = format;
  request.diffusion = LoadRequest::Diffusion::kCheckpoint;
  request.record = &record;
  load_model(checkpoint, request, pool);
  return record;
}

void expect_same(const LoadedTensors& a, const LoadedTensors& b) {
  ASSERT_EQ(a.matrices().size(), b.matrices().size());
  for (size_t i = 0; i < a.matrices().size(); ++i) {
    const auto& [name, matrix] = a.matrices()[i];
    EXPECT_EQ(b.matrices()[i].first, name);
    const PackedMatrix& other = b.matrix(name, matrix.rows(), matrix.cols());
    EXPECT_EQ(other.form(), matrix.form()) << name;
    EXPECT_TRUE(std::ranges::equal(other.data(), matrix.data())) << name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(other.data().data()) % 64, 0) << name;
  }
  EXPECT_EQ(a.vectors(), b.vectors());
}

class PackedCacheTest : public ::testing::Test {
 protected:
  std::string written() {
    write_packed_cache(path_, "key", load_tiny(WeightFormat::kQ4, pool_), pool_);
    return read_text(path_);
  }
  std::string error_of(const std::string& bytes) {
    dir_.write("a.packed", bytes);
    return input_error([&] { read_packed_cache(path_, "key", pool_); });
  }

  ThreadPool pool_{2};
  TempDir dir_;
  std::string path_ = dir_.path() + "/a.packed";
};

TEST_F(PackedCacheTest, HoldsWhatWasLoadedInEveryFormat) {
  for (const WeightFormat format : {WeightFormat::kAuto, WeightFormat::kF32, WeightFormat::kBF16,
                                    WeightFormat::kQ8, WeightFormat::kQ4}) {
    const LoadedTensors tensors = load_tiny(format, pool_);
    EXPECT_EQ(tensors.matrices().size(), 1 + 4 * (7 + 4));  // a tied lm_head once
    write_packed_cache(path_, "key", tensors, pool_);
    const auto read = read_packed_cache(path_, "key", pool_);
    ASSERT_TRUE(read);
    expect_same(tensors, *read);
  }
}

TEST_F(PackedCacheTest, AModelOutOfItIsTheSame) {
  const LoadedTensors tensors = load_tiny(WeightFormat::kQ8, pool_);
  const Checkpoint checkpoint =
      open_checkpoint(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint");
  LoadedTensors record;
  LoadRequest request;
  request.format = WeightFormat::kQ8;
  request.diffusion = LoadRequest::Diffusion::kCheckpoint;
  request.loaded = &tensors;
  const Model model = load_model(checkpoint, request, pool_);
  EXPECT_EQ(
      model.layers[3].diff->v_proj.data().data(),
      tensors.matrix("model.layers.3.self_attn.v_proj_diff.weight:q8", 128, 192).data().data());
  EXPECT_EQ(model.final_norm, tensors.vector("model.norm.weight", 192));
}

TEST_F(PackedCacheTest, NoFileIsNone) { EXPECT_FALSE(read_packed_cache(path_, "key", pool_)); }

TEST_F(PackedCacheTest, AnotherKeyIsRefused) {
  written();
  EXPECT_EQ(input_error([&] { read_packed_cache(path_, "other", pool_); }),
            path_ + ": made of another state of the model's files");
}

TEST_F(PackedCacheTest, AnotherFileIsRefused) {
  EXPECT_EQ(error_of("GGUF and so on, long enough"), path_ + ": not a packed cache");
  EXPECT_EQ(error_of("GGUF"), path_ + ": damaged: too short");
}

TEST_F(PackedCacheTest, EveryCutIsNoticed) {
  const std::string whole = written();
  std::vector<size_t> cuts = {1, 8, 23, 24, 25, 1000, 4095, 4096, 5000, whole.size() / 2};
  for (size_t i = 1; i < 100; ++i) cuts.push_back(whole.size() * i / 100);
  for (const size_t cut : cuts) {
    EXPECT_NE(error_of(whole.substr(0, cut)).find("damaged"), std::string::npos) << cut;
  }
}

TEST_F(PackedCacheTest, EveryChangedByteOfATensorIsNoticed) {
  const std::string whole = written();
  const LoadedTensors tensors = load_tiny(WeightFormat::kQ4, pool_);
  size_t tried = 0;
  for (const auto& [name, matrix] : tensors.matrices()) {
    const std::string_view bytes(reinterpret_cast<const char*>(matrix.data().data()),
                                 matrix.bytes());
    const size_t at = whole.find(bytes);
    ASSERT_NE(at, std::string::npos) << name;
    for (const size_t i : {at, at + bytes.size() / 2, at + bytes.size() - 1}) {
      std::string damaged = whole;
      damaged[i] ^= 4;
      EXPECT_EQ(error_of(damaged), path_ + ": damaged: a checksum differs") << name;
      ++tried;
    }
  }
  EXPECT_GT(tried, 100);
}

TEST_F(PackedCacheTest, EveryChangedByteOfTheHeaderIsNoticed) {
  const std::string whole = written();
  uint64_t header = 0;
  std::memcpy(&header, whole.data() + 8, sizeof(header));
  for (size_t i = 0; i < 24 + header; i += i < 24 ? 1 : 97) {
    std::string damaged = whole;
    damaged[i] ^= 1;
    EXPECT_FALSE(error_of(damaged).empty()) << i;
  }
}

TEST_F(PackedCacheTest, WithoutAFolderItFailsInOneLine) {
  const std::string path = dir_.path() + "/none/a.packed";
  EXPECT_NE(input_error([&] {
              write_packed_cache(path, "key", load_tiny(WeightFormat::kQ4, pool_), pool_);
            }).find("cannot be written"),
            std::string::npos);
}

TEST_F(PackedCacheTest, WhatIsMissingOrOfAnotherShapeIsNamed) {
  const LoadedTensors tensors = load_tiny(WeightFormat::kAuto, pool_);
  EXPECT_EQ(input_error([&] { tensors.matrix("none", 1, 1); }), "tensor none is missing");
  EXPECT_EQ(input_error([&] { tensors.matrix("model.embed_tokens.weight:auto", 1, 1); }),
            "tensor model.embed_tokens.weight:auto has shape [1088, 192], expected [1, 1]");
  EXPECT_EQ(input_error([&] { tensors.vector("model.norm.weight", 1); }),
            "tensor model.norm.weight has 192 values, expected 1");
}

}  // namespace
}  // namespace orthrus
