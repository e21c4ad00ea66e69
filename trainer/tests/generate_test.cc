#include "trainer/model/generate.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "text/tokenizer.h"
#include "trainer/data/answers.h"
#include "trainer/data/make_data.h"
#include "trainer/tests/tiny_student.h"

namespace orthrus::train {
namespace {

using Answers = std::vector<std::vector<int32_t>>;

/// Prompts of different lengths, some of words, some of made-up tokens.
std::vector<AnswerRequest> requests(size_t count) {
  const Tokenizer tokenizer = Tokenizer::load(tiny_path());
  std::vector<AnswerRequest> result;
  for (size_t i = 0; i < count; ++i) {
    AnswerRequest request{{}, 100 + i};
    if (i % 2 == 0) {
      request.prompt = tokenizer.encode("A story of " + std::string(i, 'x') + " and its end: ");
    } else {
      for (size_t t = 0; t < 1 + 9 * i; ++t) {
        request.prompt.push_back(static_cast<int32_t>((i * 31 + t * t * 7) % 1000));
      }
    }
    result.push_back(request);
  }
  return result;
}

Answers collect(const std::function<void(const OnAnswer&)>& work, size_t count) {
  Answers answers(count);
  std::vector<int> calls(count, 0);
  work([&](size_t i, std::vector<int32_t> tokens) {
    ++calls.at(i);
    answers[i] = std::move(tokens);
  });
  for (const int n : calls) EXPECT_EQ(n, 1);
  return answers;
}

Answers by_torch(const std::vector<AnswerRequest>& asked, const BatchOptions& batch,
                 at::ScalarType type = at::kFloat) {
  ArDecoder decoder(tiny_model(DiffusionSource::kNone).tensors(), at::kCPU, type);
  return collect([&](const OnAnswer& f) { generate(decoder, asked, batch, f); }, asked.size());
}

TEST(Generate, GreedyTokensAreTheEngines) {
  const std::vector<AnswerRequest> asked = requests(12);
  const BatchOptions batch{5, 40, 0};
  GenerateOptions options;
  options.program = default_orthrus_program();
  options.model = tiny_path();
  options.weights = "f32";
  const auto engine = make_answerer(options, testing::TempDir() + "/orthrus_generate_test", 7);
  const Answers expected =
      collect([&](const OnAnswer& f) { engine->answer(asked, batch, f); }, asked.size());
  EXPECT_EQ(by_torch(asked, batch), expected);
  size_t tokens = 0;
  for (const auto& answer : expected) tokens += answer.size();
  EXPECT_GT(tokens, 200u);
}

TEST(Generate, TheBatchDoesNotMatter) {
  const std::vector<AnswerRequest> asked = requests(9);
  // So low that the best token is certain.
  EXPECT_EQ(by_torch(asked, {4, 30, 1e-320}), by_torch(asked, {4, 30, 0.0}));
  for (const double temperature : {0.0, 0.9}) {
    const Answers alone = by_torch(asked, {1, 30, temperature});
    EXPECT_EQ(by_torch(asked, {4, 30, temperature}), alone);
    EXPECT_EQ(by_torch(asked, {64, 30, temperature}), alone);
    EXPECT_EQ(by_torch(asked, {4, 30, temperature, /*stride=*/16}), alone);
  }
}

TEST(Generate, SeedsMakeTheSamples) {
  std::vector<AnswerRequest> asked(3, requests(3)[2]);
  asked[1].seed = 5;
  const Answers answers = by_torch(asked, {3, 30, 1.0});
  EXPECT_EQ(answers[0], answers[2]);
  EXPECT_NE(answers[0], answers[1]);
}

// Sampled first tokens are as frequent as the model says.
TEST(Generate, SamplesFollowTheProbabilities) {
  const AnswerRequest one{{5}, 0};
  ArDecoder decoder(tiny_model(DiffusionSource::kNone).tensors(), at::kCPU, at::kFloat);
  decoder.reserve(1, 64);
  const at::Tensor expected = at::softmax(decoder.prefill({one.prompt}, {0}) / 0.8, -1)[0];
  const int64_t draws = 2000;
  std::vector<AnswerRequest> asked(draws, one);
  for (size_t i = 0; i < asked.size(); ++i) asked[i].seed = i;
  at::Tensor found = at::zeros_like(expected);
  for (const auto& answer : by_torch(asked, {1000, 1, 0.8})) found[answer.at(0)] += 1.0 / draws;
  const at::Tensor sigma = (expected * (1 - expected) / draws).sqrt();
  EXPECT_TRUE(((found - expected).abs() <= 4.5 * sigma + 1.0 / draws).all().item<bool>());
  EXPECT_LT(expected.max().item<float>(), 0.99f);
}

TEST(Generate, Bf16StaysNear) {
  const std::vector<AnswerRequest> asked = requests(8);
  const Answers exact = by_torch(asked, {8, 1, 0}),
                rounded = by_torch(asked, {8, 1, 0}, at::kBFloat16);
  int same = 0;
  for (size_t i = 0; i < exact.size(); ++i) same += exact[i] == rounded[i];
  EXPECT_GE(same, 6);
}

TEST(Generate, PromptsThatDoNotFitAreErrors) {
  const int64_t most = tiny_model(DiffusionSource::kNone).config().max_position_embeddings;
  const auto ask = [](std::vector<int32_t> prompt) { by_torch({{std::move(prompt), 0}}, {}); };
  EXPECT_THROW(ask({}), Error);
  EXPECT_THROW(ask({-1}), Error);
  EXPECT_THROW(ask({1 << 20}), Error);
  EXPECT_THROW(ask(std::vector<int32_t>(static_cast<size_t>(most), 7)), Error);
}

class TorchData : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream prompts(folder_ + "/prompts.txt");
    for (int i = 0; i < 11; ++i) prompts << "Tell me of number " << i << " and more.\n";
    prompts.close();
    options_.prompts = {folder_ + "/prompts.txt"};
    options_.out = folder_ + "/data";
    options_.shard_documents = 4;
    options_.generate.backend = Backend::kTorch;
    options_.generate.program = "/no/such/program";
    options_.generate.model = tiny_path();
    options_.generate.batch = {3, 16, 0.7};
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = testing::TempDir() + "/orthrus_torch_data_" + std::to_string(::getpid());
  MakeDataOptions options_;
};

TEST_F(TorchData, GoesOnAndSaysHowItWasMade) {
  make_data(options_);
  const Shard all = read_shards({options_.out});
  ASSERT_EQ(all.documents.size(), 11u);
  EXPECT_EQ(all.provenance.at("backend"), "libtorch on cpu");
  for (const Document& d : all.documents) ASSERT_EQ(d.answers.size(), 1u);

  std::filesystem::remove(options_.out + "/00001.shard");
  make_data(options_);
  const Shard again = read_shards({options_.out});
  ASSERT_EQ(again.documents.size(), 11u);
  for (size_t i = 0; i < 11; ++i) EXPECT_EQ(again.documents[i].tokens, all.documents[i].tokens);

  options_.generate.batch.temperature = 0;
  EXPECT_THROW(make_data(options_), Error);
}

TEST_F(TorchData, UnknownDevicesAndWeightsAreRefused) {
  options_.generate.device = "abacus";
  EXPECT_THROW(make_data(options_), Error);
  options_.generate.device = "cpu";
  options_.generate.weights = "q4";
  EXPECT_THROW(make_data(options_), Error);
}

}  // namespace
}  // namespace orthrus::train
