#include "trainer/export/export_view.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/error.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "trainer/fit/fit.h"
#include "trainer/fit/training_state.h"
#include "trainer/tests/tiny_student.h"

namespace orthrus::train {
namespace {

namespace fs = std::filesystem;

class Export : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/orthrus_export_" + std::to_string(::getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write_shard(folder_ + "/made.shard", tiny_documents(20));
    FitOptions fit_options;
    fit_options.model = tiny_path();
    fit_options.data = {folder_ + "/made.shard"};
    fit_options.out = folder_ + "/run";
    fit_options.plan.row_tokens = 90;
    fit_options.plan.row_blocks = 10;
    fit_options.steps = 3;
    fit_options.student.optimizer = optimizer_;
    ASSERT_TRUE(fit(fit_options));
    options_.model = tiny_path();
    options_.run = folder_ + "/run";
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// What the run's checkpoint holds.
  ModelTensors trained() const {
    DualModel model = tiny_model(DiffusionSource::kCheckpoint);
    Student student(model, {});
    load_parameters(saved_states(options_.run).front(), student.parameters());
    return model.tensors();
  }
  ModelTensors exported(ExportForm form, const std::string& name) {
    options_.form = form;
    options_.out = folder_ + "/" + name;
    export_view(options_);
    if (form == ExportForm::kCheckpoint) {
      return load_tensors(open_checkpoint(options_.out), DiffusionSource::kCheckpoint);
    }
    const Checkpoint base = open_checkpoint(tiny_path());
    const Adapter adapter = open_adapter(options_.out, base.config);
    return load_tensors(base, DiffusionSource::kAdapter, &adapter);
  }

  Optimizer optimizer_ = Optimizer::kAdamW;
  std::string folder_;
  ExportOptions options_;
};

class ExportOfMuon : public Export {
 protected:
  ExportOfMuon() { optimizer_ = Optimizer::kMuon; }
};

TEST_F(ExportOfMuon, HoldsTheTrainedView) {
  const ModelTensors expected = trained();
  const ModelTensors got = exported(ExportForm::kBf16, "muon.safetensors");
  const at::Tensor& weight = expected.layers[0].diff.o;
  EXPECT_LE((got.layers[0].diff.o - weight).abs().max().item<double>(),
            weight.abs().max().item<double>() / 256);
}

TEST_F(Export, AdaptersAndCheckpointHoldTheTrainedView) {
  const ModelTensors expected = trained();
  const ModelTensors start = tiny_model(DiffusionSource::kCheckpoint).tensors();
  for (const auto& [form, name] :
       std::map<ExportForm, std::string>{{ExportForm::kBf16, "bf16.safetensors"},
                                         {ExportForm::kInt8, "int8.safetensors"},
                                         {ExportForm::kCheckpoint, "checkpoint"}}) {
    const ModelTensors got = exported(form, name);
    EXPECT_EQ(got.config.block_size, 8);
    EXPECT_EQ(got.config.mask_token_id, 1024);
    for (size_t i = 0; i < got.layers.size(); ++i) {
      const at::Tensor& want = expected.layers[i].diff.qkv.detach();
      const at::Tensor& have = got.layers[i].diff.qkv;
      EXPECT_FALSE(same_bits(want, start.layers[i].diff.qkv));
      if (form == ExportForm::kInt8) {
        const at::Tensor half_step = want.abs().amax(1, true) / 127 * 0.501;
        EXPECT_TRUE(((have - want).abs() <= half_step).all().item<bool>()) << name;
      } else {
        EXPECT_TRUE(same_bits(have, want.to(at::kBFloat16).to(at::kFloat))) << name;
      }
      EXPECT_TRUE(same_bits(got.layers[i].ar.qkv, start.layers[i].ar.qkv));
    }
    EXPECT_TRUE(same_bits(got.embedding, start.embedding));
  }
}

TEST_F(Export, PartsAreTheWholeAdapterAndTrainingGoesOnFromThem) {
  const ModelTensors whole = exported(ExportForm::kInt8, "whole.safetensors");
  options_.part_bytes = 100'000;
  const ModelTensors parts = exported(ExportForm::kInt8, "parts");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder_ + "/parts")) {
    if (entry.path().extension() != ".safetensors") continue;
    ++files;
    EXPECT_LE(entry.file_size(), options_.part_bytes);
  }
  EXPECT_GT(files, 2);
  for (size_t i = 0; i < whole.layers.size(); ++i) {
    EXPECT_TRUE(same_bits(parts.layers[i].diff.qkv, whole.layers[i].diff.qkv));
    EXPECT_TRUE(same_bits(parts.layers[i].diff.o, whole.layers[i].diff.o));
  }
  // Another cut leaves no part of this one.
  const auto parts_of = [&] {
    int count = 0;
    for (const auto& entry : fs::directory_iterator(folder_ + "/parts")) {
      count += entry.path().extension() == ".safetensors";
    }
    return count;
  };
  options_.part_bytes = 400'000;
  exported(ExportForm::kInt8, "parts");
  EXPECT_LT(parts_of(), files);
  EXPECT_GT(parts_of(), 0);
  FitOptions more;
  more.model = tiny_path();
  more.adapter = folder_ + "/parts";
  more.data = {folder_ + "/made.shard"};
  more.out = folder_ + "/more";
  more.plan.row_tokens = 90;
  more.plan.row_blocks = 10;
  more.steps = 1;
  EXPECT_TRUE(fit(more));
}

TEST_F(Export, MetadataGoesIntoTheAdapterAndTakenWordsAreRefused) {
  options_.metadata = {{"license", "apache-2.0"}};
  exported(ExportForm::kInt8, "worded.safetensors");
  const Checkpoint base = open_checkpoint(tiny_path());
  const Adapter adapter = open_adapter(options_.out, base.config);
  EXPECT_EQ(adapter.metadata.at("license"), "apache-2.0");
  EXPECT_EQ(adapter.metadata.at("training_steps"), "3");
  for (const char* taken : {"block_size", "training_steps", "format", ""}) {
    options_.metadata = {{taken, "1"}};
    EXPECT_THROW(exported(ExportForm::kInt8, "refused.safetensors"), Error) << taken;
    EXPECT_FALSE(fs::exists(options_.out));
  }
  options_.metadata = {{"license", "mit"}};
  EXPECT_THROW(exported(ExportForm::kCheckpoint, "refused"), Error);
}

TEST_F(Export, ADamagedCheckpointGivesWayToTheOneBefore) {
  const std::string newest = options_.run + "/checkpoint-00000099.safetensors";
  std::ofstream(newest) << "half of it";
  options_.out = folder_ + "/before.safetensors";
  export_view(options_);
  EXPECT_EQ(
      open_adapter(options_.out, open_checkpoint(tiny_path()).config).metadata.at("training_steps"),
      "3");
  options_.run = newest;  // named itself, it must be whole
  EXPECT_THROW(export_view(options_), Error);
}

// What the official code opens: the names, shapes and types of the golden checkpoint, which it has
// written itself.
TEST_F(Export, ACheckpointHasTheOfficialLayout) {
  exported(ExportForm::kCheckpoint, "official");
  const auto layout = [](const std::string& path) {
    std::map<std::string, std::pair<TensorType, std::vector<int64_t>>> tensors;
    const Checkpoint checkpoint = open_checkpoint(path);
    for (const TensorInfo& info : checkpoint.tensors->tensors()) {
      tensors[info.name] = {info.type, info.shape};
    }
    return tensors;
  };
  EXPECT_EQ(layout(options_.out), layout(tiny_path()));
  const auto config = [](const std::string& path) {
    return read_json_file(path + "/config.json", 1 << 20);
  };
  EXPECT_EQ(config(options_.out), config(tiny_path()));
  EXPECT_EQ(SafetensorsSource(options_.out + "/model.safetensors").metadata(),
            SafetensorsSource(tiny_path() + "/model.safetensors").metadata());
}

TEST_F(Export, OfAFolderWithoutARunIsRefused) {
  options_.run = folder_;
  options_.out = folder_ + "/none.safetensors";
  EXPECT_THROW(export_view(options_), Error);
  EXPECT_FALSE(fs::exists(options_.out));
}

}  // namespace
}  // namespace orthrus::train
