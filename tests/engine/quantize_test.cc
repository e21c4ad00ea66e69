// Quantised files hold what load_model makes of their source, to the bit.

#include "engine/quantize.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <limits>

#include "formats/gguf.h"
#include "model/random_files.h"
#include "model/weights.h"
#include "text/tokenizer.h"

namespace orthrus {
namespace {

using testing::RandomFiles;
using testing::TempDir;

constexpr const char* kTokenizerJson = R"({
  "added_tokens": [{"id": 3, "content": "<end>", "special": true},
                   {"id": 5, "content": "<call>", "special": false, "normalized": false}],
  "normalizer": {"type": "NFC"},
  "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
    {"type": "Split", "behavior": "Isolated", "pattern": {"Regex":
     "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
    {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";

RandomFiles random_files(Architecture architecture) {
  ModelConfig c;
  c.architecture = architecture;
  c.vocab_size = 70;
  c.hidden_size = 96;
  c.intermediate_size = 64;
  c.num_layers = 2;
  c.num_heads = 4;
  c.num_kv_heads = 2;
  c.head_dim = 32;
  c.max_position_embeddings = 256;
  c.rms_norm_eps = 1e-5;
  c.block_size = 8;
  c.mask_token_id = 69;
  RandomFiles files{c, {}, {}};
  if (architecture == Architecture::kLlama) {
    files.config.attention_bias = files.config.attention_out_bias = files.config.mlp_bias = true;
    testing::scale_as_llama3(files, 8, 1, 4, 32);
  } else if (architecture == Architecture::kQwen2) {
    files.config.attention_bias = files.config.tie_word_embeddings = true;
    files.config.mask_token_id = -1;
    testing::scale_linearly(files, 4);
  } else {
    files.config.qk_norm = true;
    testing::scale_as_yarn(files, 4, 4, 1, 32);
  }
  testing::fill(files, 1);
  return files;
}

Model load(const std::string& path, WeightFormat format, const Adapter* adapter = nullptr) {
  ThreadPool pool(2);
  LoadRequest request;
  request.format = format;
  request.adapter = adapter;
  request.diffusion =
      adapter ? LoadRequest::Diffusion::kAdapter : LoadRequest::Diffusion::kCheckpoint;
  return load_model(open_checkpoint(path), request, pool);
}

QuantizeResult quantize(const std::string& path, const QuantizeRequest& request,
                        const std::string& output) {
  ThreadPool pool(2);
  return quantize_model(open_checkpoint(path), request, output, pool);
}

void expect_same(const PackedMatrix& a, const PackedMatrix& b, const char* name) {
  ASSERT_EQ(a.form(), b.form()) << name;
  ASSERT_EQ(a.rows(), b.rows()) << name;
  std::vector<float> x(static_cast<size_t>(a.cols())), y(static_cast<size_t>(b.cols()));
  for (int64_t row = 0; row < a.rows(); ++row) {
    unpack_row(a, row, x.data());
    unpack_row(b, row, y.data());
    ASSERT_EQ(x, y) << name << " row " << row;
  }
}

void expect_same(const AttentionWeights& a, const AttentionWeights& b) {
  expect_same(a.q_proj, b.q_proj, "q_proj");
  expect_same(a.k_proj, b.k_proj, "k_proj");
  expect_same(a.v_proj, b.v_proj, "v_proj");
  expect_same(a.o_proj, b.o_proj, "o_proj");
  EXPECT_EQ(a.q_norm, b.q_norm);
  EXPECT_EQ(a.k_norm, b.k_norm);
  EXPECT_EQ(a.q_bias, b.q_bias);
  EXPECT_EQ(a.k_bias, b.k_bias);
  EXPECT_EQ(a.v_bias, b.v_bias);
  EXPECT_EQ(a.o_bias, b.o_bias);
}

void expect_same(const Model& a, const Model& b) {
  ASSERT_EQ(a.layers.size(), b.layers.size());
  ASSERT_EQ(a.embedding.has_value(), b.embedding.has_value());
  if (a.embedding) expect_same(*a.embedding, *b.embedding, "embedding");
  expect_same(a.lm_head, b.lm_head, "lm_head");
  for (size_t i = 0; i < a.layers.size(); ++i) {
    const LayerWeights& x = a.layers[i];
    const LayerWeights& y = b.layers[i];
    expect_same(x.ar, y.ar);
    ASSERT_TRUE(x.diff && y.diff);
    expect_same(*x.diff, *y.diff);
    expect_same(x.mlp.gate_proj, y.mlp.gate_proj, "gate_proj");
    expect_same(x.mlp.up_proj, y.mlp.up_proj, "up_proj");
    expect_same(x.mlp.down_proj, y.mlp.down_proj, "down_proj");
    EXPECT_EQ(x.input_norm, y.input_norm);
    EXPECT_EQ(x.post_attention_norm, y.post_attention_norm);
    EXPECT_EQ(x.mlp.gate_bias, y.mlp.gate_bias);
    EXPECT_EQ(x.mlp.up_bias, y.mlp.up_bias);
    EXPECT_EQ(x.mlp.down_bias, y.mlp.down_bias);
  }
  EXPECT_EQ(a.final_norm, b.final_norm);
  EXPECT_EQ(a.mask_embedding, b.mask_embedding);
  EXPECT_EQ(a.rope_inv_freq, b.rope_inv_freq);
  EXPECT_EQ(a.config.rope.attention_factor, b.config.rope.attention_factor);
  EXPECT_EQ(a.config.block_size, b.config.block_size);
  EXPECT_EQ(a.config.mask_token_id, b.config.mask_token_id);
  EXPECT_EQ(a.config.architecture, b.config.architecture);
  EXPECT_EQ(a.config.max_position_embeddings, b.config.max_position_embeddings);
  EXPECT_FLOAT_EQ(static_cast<float>(a.config.rms_norm_eps),
                  static_cast<float>(b.config.rms_norm_eps));
}

class Quantize : public ::testing::TestWithParam<Architecture> {
 protected:
  const RandomFiles files_ = random_files(GetParam());
  TempDir hf_, gguf_, adapter_, out_;
  const std::string output_ = out_.path() + "/out.gguf";
};
INSTANTIATE_TEST_SUITE_P(All, Quantize,
                         ::testing::Values(Architecture::kLlama, Architecture::kQwen2,
                                           Architecture::kQwen3));

TEST_P(Quantize, HoldsWhatALoadMakesOfTheSource) {
  const std::string hf = write_hf(files_, false, hf_);
  hf_.write("tokenizer.json", kTokenizerJson);
  const std::string gguf = write_gguf(files_, false, gguf_);
  const std::string adapter_path = write_adapter(files_, adapter_);
  const Adapter adapter = open_adapter(adapter_path, files_.config);
  const Adapter int8 = [&] {
    testing::TempDir& dir = adapter_;
    write_adapter(adapter, AdapterType::kInt8, dir.path() + "/int8.safetensors");
    return open_adapter(dir.path() + "/int8.safetensors", files_.config);
  }();
  for (WeightFormat format : {WeightFormat::kBF16, WeightFormat::kQ8, WeightFormat::kQ4}) {
    for (const Adapter* view : {&adapter, &int8}) {
      for (const std::string& source : {hf, gguf}) {
        SCOPED_TRACE(source);
        QuantizeRequest request;
        request.format = format;
        request.adapter = view;
        const QuantizeResult result = quantize(source, request, output_);
        EXPECT_EQ(result.bytes, std::filesystem::file_size(output_));
        expect_same(load(output_, WeightFormat::kAuto), load(source, format, view));
        // The same once more: what is of the type already is copied.
        request.adapter = nullptr;
        quantize(output_, request, out_.path() + "/again.gguf");
        expect_same(load(out_.path() + "/again.gguf", WeightFormat::kAuto),
                    load(output_, WeightFormat::kAuto));
      }
    }
  }
}

TEST_P(Quantize, TheAdapterKnowsItsBaseAgain) {
  const std::string source = write_gguf(files_, false, gguf_);
  const std::string hash = base_hash(*open_checkpoint(source).tensors);
  quantize(source, {.format = WeightFormat::kQ8}, output_);
  EXPECT_TRUE(is_base(open_checkpoint(output_), hash));
  quantize(output_, {.format = WeightFormat::kQ4}, out_.path() + "/again.gguf");
  EXPECT_TRUE(is_base(open_checkpoint(out_.path() + "/again.gguf"), hash));
  EXPECT_FALSE(is_base(open_checkpoint(output_), std::string(64, '0')));
}

TEST(QuantizeFile, OwnDiffusionViewGoesAlongOrStaysAway) {
  const RandomFiles files = random_files(Architecture::kLlama);
  TempDir dir, out;
  const std::string source = write_gguf(files, true, dir);
  const std::string output = out.path() + "/out.gguf";
  quantize(source, {.format = WeightFormat::kQ8}, output);
  expect_same(load(output, WeightFormat::kAuto), load(source, WeightFormat::kQ8));
  quantize(source, {.format = WeightFormat::kQ8, .diffusion = false}, output);
  const Checkpoint plain = open_checkpoint(output);
  EXPECT_FALSE(plain.config.is_orthrus);
  EXPECT_EQ(plain.tensors->tensors().size(), ar_tensors(plain.config).size() + 1);  // rope_freqs
}

TEST(QuantizeFile, MetadataOfAGgufSourceStaysAsItIs) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir dir;
  const auto with = [&](auto&& add) {
    testing::GgufBuilder gguf;
    testing::add_gguf_metadata(files, gguf);
    add(gguf);
    for (const TensorSpec& spec : ar_tensors(files.config)) {
      gguf.zeros(testing::ggml_name(spec.name), {spec.shape.rbegin(), spec.shape.rend()});
    }
    gguf.tensor("other.weight", testing::GgufBuilder::kF16, {2}, "abcd");
    return dir.write("in.gguf", gguf.build());
  };
  const std::string source = with([](testing::GgufBuilder& gguf) {
    gguf.text("general.name", "A model").u16("x.u16", 7).i8("x.i8", -7).f64("x.f64", 0.1);
    gguf.i32s("x.list", {1, -2}).texts("x.texts", {"a", ""}).boolean("x.flag", true);
    gguf.u32("general.file_type", 0).u32("quantize.imatrix.chunks_count", 1).u32("split.count", 1);
  });
  const std::string output = dir.path() + "/out.gguf";
  quantize(source, {.format = WeightFormat::kQ4}, output);
  const GgufFile before(source);
  const GgufFile after(output);
  size_t kept = 0;
  for (size_t i = 0; i < before.metadata().entries().size(); ++i) {
    const std::string& key = before.metadata().entries()[i].first;
    if (key == "general.file_type" || key.starts_with("quantize.") || key.starts_with("split.")) {
      continue;
    }
    ASSERT_EQ(after.metadata().entries()[kept].first, key);
    const auto x = before.metadata().encoded(i);
    const auto y = after.metadata().encoded(kept++);
    EXPECT_TRUE(std::equal(x.begin(), x.end(), y.begin(), y.end())) << key;
  }
  EXPECT_EQ(after.metadata().entries().size(), kept + 3);
  EXPECT_EQ(after.metadata().get<int64_t>("general.file_type"), 2);
  EXPECT_EQ(after.metadata().get<int64_t>("general.quantization_version"), 2);
  EXPECT_EQ(after.metadata().get<std::string_view>("orthrus.base_hash"), base_hash(before));
  const TensorInfo* other = after.find("other.weight");
  ASSERT_TRUE(other);
  EXPECT_EQ(other->type, TensorType::kF16);
  EXPECT_EQ(std::memcmp(other->data.data(), "abcd", 4), 0);
}

TEST(QuantizeFile, EmbeddingAndHeadStayAt8BitsAndVectorsFloat) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir dir;
  const std::string output = dir.path() + "/out.gguf";
  quantize(write_gguf(files, false, dir), {.format = WeightFormat::kQ4}, output);
  const GgufFile file(output);
  for (const TensorInfo& tensor : file.tensors()) {
    const bool head = tensor.name == kEmbeddingName || tensor.name == kLmHeadName;
    const TensorType type = tensor.shape.size() == 1 ? TensorType::kF32
                            : head                   ? TensorType::kQ8_0
                                                     : TensorType::kQ4_0;
    EXPECT_EQ(tensor.type, type) << tensor.name;
  }
}

TEST(QuantizeFile, RowsThatAreNotWholeBlocksAreBf16) {
  RandomFiles files = random_files(Architecture::kQwen3);
  files.config.intermediate_size = 80;
  files.tensors.clear();
  testing::fill(files, 2);
  TempDir dir;
  const std::string output = dir.path() + "/out.gguf";
  quantize(write_gguf(files, false, dir), {.format = WeightFormat::kQ8}, output);
  const GgufFile file(output);
  EXPECT_EQ(file.find("model.layers.0.mlp.down_proj.weight")->type, TensorType::kBF16);
  EXPECT_EQ(file.find("model.layers.0.mlp.up_proj.weight")->type, TensorType::kQ8_0);
}

TEST(QuantizeFile, TokensOfADirectory) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir dir;
  const std::string hf = write_hf(files, false, dir);
  dir.write("tokenizer.json", kTokenizerJson);
  const std::string output = dir.path() + "/out.gguf";
  quantize(hf, {}, output);
  const Tokenizer before = Tokenizer::load(hf);
  const Tokenizer after = Tokenizer::load(output);
  for (const char* text : {"ab<end>a<call>", "e\xcc\x81 ab", "[PAD4]"}) {
    EXPECT_EQ(after.encode(text), before.encode(text)) << text;
  }
  for (int32_t id = 0; id < 70; ++id) {
    const bool known = id < before.vocab_size() && before.has_token(id);
    ASSERT_EQ(after.has_token(id), known) << id;
    if (!known) continue;
    EXPECT_EQ(after.token_bytes(id), before.token_bytes(id));
    EXPECT_EQ(after.is_special(id), before.is_special(id));
  }
}

TEST(QuantizeFile, YarnOfADirectory) {
  TempDir dir, out;
  RandomFiles files = random_files(Architecture::kQwen3);
  files.rope_scaling["attention_factor"] = 0.5;
  write_hf(files, true, dir);
  dir.write("tokenizer.json", kTokenizerJson);
  const std::string output = out.path() + "/out.gguf";
  quantize(dir.path(), {}, output);
  const RopeConfig read = open_checkpoint(output).config.rope;
  EXPECT_FLOAT_EQ(static_cast<float>(read.attention_factor), 0.5f);
  EXPECT_EQ(read.yarn->factor, 4);
  EXPECT_EQ(read.yarn->original_context, 32);
  files.rope_scaling["truncate"] = false;
  write_hf(files, true, dir);
  EXPECT_INPUT_ERROR(quantize(dir.path(), {}, output), "truncate false has no form in GGUF files");
}

TEST(QuantizeFile, ATokenizerWithoutANameInGgufIsRefused) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir dir;
  const std::string hf = write_hf(files, false, dir);
  std::string json = kTokenizerJson;
  json.replace(json.find("\\\\p{N}|"), 7, "\\\\p{N}{2}|");
  dir.write("tokenizer.json", json);
  EXPECT_INPUT_ERROR(quantize(hf, {}, dir.path() + "/out.gguf"), "GGUF has no name for its");
  EXPECT_FALSE(std::filesystem::exists(dir.path() + "/out.gguf"));
}

size_t files_in(const TempDir& dir) {
  size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(dir.path())) ++files;
  return files;
}

TEST(QuantizeFile, AFullDiskLeavesTheOldFileAlone) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir dir, out;
  const std::string source = write_gguf(files, false, dir);
  const std::string output = out.write("out.gguf", "old");
  // A file size limit stands in for a full disk.
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  struct rlimit low = before;
  low.rlim_cur = 100000;
  auto handler = ::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_INPUT_ERROR(quantize(source, {}, output), output + ": cannot be written: File too large");
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  EXPECT_EQ(testing::read_text(output), "old");
  EXPECT_EQ(files_in(out), 1u);
}

TEST(QuantizeFile, AStopLeavesNothing) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir dir, out;
  std::stop_source stop;
  QuantizeRequest request;
  request.stop = stop.get_token();
  request.progress = [&](double) { stop.request_stop(); };
  EXPECT_TRUE(quantize(write_gguf(files, false, dir), request, out.path() + "/out.gguf").stopped);
  EXPECT_EQ(files_in(out), 0u);
}

TEST(QuantizeFile, FilesOfTheModelAreNotReplaced) {
  const RandomFiles files = random_files(Architecture::kQwen3);
  TempDir hf, dir, view;
  write_hf(files, false, hf);
  hf.write("tokenizer.json", kTokenizerJson);
  const std::string gguf = write_gguf(files, false, dir);
  const Adapter adapter = open_adapter(write_adapter(files, view), files.config);
  EXPECT_INPUT_ERROR(quantize(gguf, {}, dir.path() + "/./model.gguf"), "is a file of the model");
  EXPECT_INPUT_ERROR(quantize(hf.path(), {}, hf.path() + "/model.safetensors"),
                     "is a file of the model");
  EXPECT_INPUT_ERROR(quantize(gguf, {.adapter = &adapter}, adapter.path), "is a file of the model");
  EXPECT_INPUT_ERROR(quantize(gguf, {}, dir.path() + "/a-00001-of-00002.gguf"),
                     "a part of a split");
}

TEST(QuantizeFile, AValueThatDoesNotFitIsNamed) {
  RandomFiles files = random_files(Architecture::kQwen3);
  files.tensors["model.layers.1.mlp.up_proj.weight"][96 * 5 + 40] =
      std::numeric_limits<float>::infinity();
  TempDir dir;
  EXPECT_INPUT_ERROR(quantize(write_gguf(files, false, dir), {}, dir.path() + "/out.gguf"),
                     "tensor model.layers.1.mlp.up_proj.weight: row 5, columns 32 to 63: ");
}

}  // namespace
}  // namespace orthrus
