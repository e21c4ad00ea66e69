#include "engine/cached_load.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <sstream>

#include "engine/loaded_model.h"
#include "engine/test_models.h"
#include "formats/test_files.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;
using orthrus::testing::read_text;
using orthrus::testing::TempDir;

/// What is logged while it lives.
class CaughtLog {
 public:
  CaughtLog() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)));
  }
  ~CaughtLog() { spdlog::set_default_logger(before_); }
  bool has(const std::string& text) const { return out_.str().find(text) != std::string::npos; }

 private:
  std::ostringstream out_;
  std::shared_ptr<spdlog::logger> before_;
};

class CachedLoadTest : public ::testing::Test {
 protected:
  CachedLoadTest() {
    fs::copy(tiny_path(), model_, fs::copy_options::recursive);
    options_ = tiny_options(WeightFormat::kQ4);
    options_.model = model_;
    options_.packed_cache = cache_;
  }

  /// The packed bytes of an open with these options, all matrices in a row.
  std::string open_bytes(const LoadOptions& options) {
    const LoadedModel loaded = open_model(options, pool_);
    std::string bytes;
    const auto add = [&](const PackedMatrix& matrix) {
      bytes.append(reinterpret_cast<const char*>(matrix.data().data()), matrix.bytes());
    };
    add(loaded.model.lm_head);
    for (const LayerWeights& layer : loaded.model.layers) {
      add(layer.ar.q_proj);
      if (layer.diff) add(layer.diff->o_proj);
    }
    for (const float value : loaded.model.final_norm) bytes += std::to_string(value);
    for (const float value : loaded.model.mask_embedding) bytes += std::to_string(value);
    return bytes;
  }
  std::string plain_bytes() {
    LoadOptions options = options_;
    options.packed_cache.clear();
    return open_bytes(options);
  }
  std::vector<std::string> cache_files() const {
    std::vector<std::string> files;
    if (!fs::exists(cache_)) return files;
    for (const auto& entry : fs::directory_iterator(cache_)) files.push_back(entry.path());
    return files;
  }

  ThreadPool pool_{2};
  TempDir dir_;
  std::string model_ = dir_.path() + "/model";
  std::string cache_ = dir_.path() + "/deep/cache";
  LoadOptions options_;
};

TEST_F(CachedLoadTest, TheSecondLoadComesFromTheFile) {
  const std::string plain = plain_bytes();
  EXPECT_EQ(open_bytes(options_), plain);
  const auto files = cache_files();
  ASSERT_EQ(files.size(), 1);
  LoadRequest request;
  request.format = WeightFormat::kQ4;
  request.diffusion = LoadRequest::Diffusion::kCheckpoint;
  EXPECT_EQ(files[0], packed_cache_path(cache_, open_checkpoint(model_), request));
  const auto written = fs::last_write_time(files[0]);
  CaughtLog log;
  EXPECT_EQ(open_bytes(options_), plain);
  EXPECT_FALSE(log.has("packed"));
  EXPECT_EQ(fs::last_write_time(files[0]), written);
}

TEST_F(CachedLoadTest, FormatsAndViewsHaveFilesOfTheirOwn) {
  open_bytes(options_);
  options_.weights = WeightFormat::kQ8;
  EXPECT_EQ(open_bytes(options_), plain_bytes());
  options_.diffusion = false;
  EXPECT_EQ(open_bytes(options_), plain_bytes());
  options_.diffusion = true;
  options_.adapter = "copy";
  const std::string plain = plain_bytes();
  EXPECT_EQ(open_bytes(options_), plain);
  EXPECT_EQ(open_bytes(options_), plain);
  EXPECT_EQ(cache_files().size(), 4);
}

TEST_F(CachedLoadTest, ChangedFilesMakeItAnew) {
  open_bytes(options_);
  const std::string weights = model_ + "/model.safetensors";
  const auto time = fs::last_write_time(weights);
  std::string bytes = read_text(weights);
  bytes[bytes.size() - 1000] ^= 1;
  bytes[bytes.size() / 2] ^= 1;
  dir_.write("model/model.safetensors", bytes);
  fs::last_write_time(weights, time);  // as cp -p would leave it
  CaughtLog log;
  EXPECT_EQ(open_bytes(options_), plain_bytes());
  EXPECT_TRUE(log.has("made anew"));
  EXPECT_TRUE(log.has("another state of the model's files"));
  EXPECT_EQ(cache_files().size(), 1);
}

TEST_F(CachedLoadTest, CachesOfModelsThatAreGoneOrChangedGoWhenOneIsWritten) {
  const auto other = [&](const char* name) {
    LoadOptions options = options_;
    options.model = dir_.path() + "/" + name;
    fs::copy(tiny_path(), options.model, fs::copy_options::recursive);
    open_bytes(options);
    return options.model;
  };
  const std::string gone = other("gone"), changed = other("changed");
  other("kept");
  const std::string closed = other("closed") + "/model.safetensors";
  dir_.write("deep/cache/mine.packed", "no cache");
  dir_.write("deep/cache/notes.txt", "nothing to do with it");
  other("no\xff-utf8");
  EXPECT_EQ(cache_files().size(), 7);
  fs::remove(closed);
  fs::create_directory(closed);  // is there, but cannot be read now
  fs::remove_all(gone);
  fs::last_write_time(changed + "/model.safetensors", fs::file_time_type::clock::now());
  CaughtLog log;
  EXPECT_EQ(open_bytes(options_), plain_bytes());
  EXPECT_TRUE(log.has("removed: the files of its model have changed or are gone"));
  const auto left = cache_files();
  // Of "kept", "closed", the one without UTF-8 and this model, and the two that are no caches.
  EXPECT_EQ(left.size(), 6);
  options_.weights = WeightFormat::kQ8;
  open_bytes(options_);
  EXPECT_EQ(cache_files().size(), 7);  // another format of the same model
}

TEST_F(CachedLoadTest, ADamagedFileIsMadeAnew) {
  const std::string plain = open_bytes(options_);
  const std::string path = cache_files().at(0);
  const std::string whole = read_text(path);
  for (std::string bytes :
       {whole.substr(0, whole.size() / 2), whole.substr(0, 10), std::string("x")}) {
    std::ofstream(path, std::ios::binary) << bytes;
    CaughtLog log;
    EXPECT_EQ(open_bytes(options_), plain);
    EXPECT_TRUE(log.has("damaged")) << bytes.size();
    EXPECT_EQ(read_text(path), whole);
  }
  std::string bytes = whole;
  bytes[bytes.size() / 2] ^= 1;
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(open_bytes(options_), plain);
  EXPECT_EQ(read_text(path), whole);
}

TEST_F(CachedLoadTest, WhereItCannotBeWrittenTheModelStillLoads) {
  options_.packed_cache = dir_.write("file", "in the way") + "/cache";
  CaughtLog log;
  EXPECT_EQ(open_bytes(options_), plain_bytes());
  EXPECT_TRUE(log.has("no packed cache: "));
}

TEST_F(CachedLoadTest, TextsAreTheSame) {
  GenerateOptions generate;
  generate.max_new_tokens = 40;
  generate.ignore_eos = true;
  LoadOptions plain = options_;
  plain.packed_cache.clear();
  const std::vector<int32_t> prompt = {5, 6, 7, 8, 9};
  const auto answer = [&](const LoadOptions& options) {
    Generator generator(options);
    return generator.generate(prompt, generate, nullptr, nullptr, {}).token_ids;
  };
  const auto expected = answer(plain);
  EXPECT_EQ(expected.size(), 40);
  EXPECT_EQ(answer(options_), expected);
  EXPECT_EQ(answer(options_), expected);
}

}  // namespace
}  // namespace orthrus
