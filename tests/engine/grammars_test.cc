// Answers that must have a form: the engine's end of src/grammar.
#include "engine/grammars.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "engine/engine_requests.h"

namespace orthrus {
namespace {

const char* const kPerson = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 12},
    "age": {"type": "integer", "minimum": 0, "maximum": 120},
    "likes": {"type": "array", "items": {"enum": ["tea", "coffee"]}, "minItems": 1, "maxItems": 3}
  },
  "required": ["name", "age", "likes"],
  "additionalProperties": false
})";

class GrammarsTest : public testing::Test {
 protected:
  Generator generator_{demo_options(WeightFormat::kBF16)};

  std::vector<int32_t> prompt(const std::string& text) {
    return generator_.loaded().tokenizer.encode("<|im_start|>user\n" + text +
                                                "<|im_end|>\n<|im_start|>assistant\n");
  }
  GenerateResult answer(const std::string& text, const GenerateOptions& options) {
    return generator_.generate(prompt(text), options, nullptr, nullptr, {});
  }
};

TEST_F(GrammarsTest, AnswersAreWhatTheSchemaSaysAndThoseOfPlainAr) {
  int64_t accepted = 0;
  for (const double temperature : {0.0, 1.0}) {
    for (const char* text : {"Describe a person called Ann as JSON.", "Who likes tea?"}) {
      GenerateOptions options;
      options.max_new_tokens = 200;
      options.json_schema = kPerson;
      options.draft_max = 7;
      options.sampling.temperature = temperature;
      options.sampling.seed = 3;
      const GenerateResult dual = answer(text, options);
      options.use_diffusion_mode = false;
      EXPECT_EQ(dual.token_ids, answer(text, options).token_ids);
      EXPECT_EQ(dual.finish_reason, FinishReason::kStop);
      const auto person = nlohmann::json::parse(dual.text);
      EXPECT_EQ(person.size(), 3u);
      EXPECT_LE(person.at("age").get<int>(), 120);
      EXPECT_LE(person.at("likes").size(), 3u);
      for (const auto& drink : person.at("likes")) {
        EXPECT_TRUE(drink == "tea" || drink == "coffee");
      }
      accepted += dual.accepted;
    }
  }
  EXPECT_GT(accepted, 20);  // the draft view knows the form too
}

TEST_F(GrammarsTest, TheSameInCompany) {
  BlockPool pool(generator_.block_pool().layout(), blocks_for(generator_.max_seq_len()) + 8);
  AnswerParts parts = generator_.answer_parts();
  Engine engine({parts, generator_.forward(), pool}, {});
  std::vector<EngineRequest> requests;
  for (const char* grammar :
       {"root ::= [a-z]+ \" \" [0-9]{3}", "root ::= (\"ha\" | \"ho\"){4}", ""}) {
    for (const uint64_t seed : {1, 2}) {
      EngineRequest request;
      request.prompt = prompt("Say anything.");
      request.options.max_new_tokens = 24;
      request.options.grammar = grammar;
      request.options.sampling.temperature = 1;
      request.options.sampling.seed = seed;
      requests.push_back(request);
    }
  }
  std::vector<Heard> heard(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) engine.submit(requests[i], heard[i]);
  while (engine.step()) continue;
  for (size_t i = 0; i < requests.size(); ++i) {
    expect_as_alone(heard[i], generator_.generate(requests[i].prompt, requests[i].options, nullptr,
                                                  nullptr, {}));
  }
  EXPECT_EQ(heard[2].text.size(), 8u);
}

TEST_F(GrammarsTest, WrongOnesAreRefusedBeforeAnythingRuns) {
  GenerateOptions options;
  const auto message = [&] {
    try {
      answer("Hi", options);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return std::string(error.what());
    }
    return std::string();
  };
  options.grammar = "root ::= root";
  EXPECT_NE(message().find("root"), std::string::npos);
  options.json_schema = "{}";
  EXPECT_EQ(message(), "grammar and json_schema: expected one of them, found both");
  options.grammar.clear();
  options.json_schema = R"({"not": {}})";
  EXPECT_NE(message().find("not"), std::string::npos);
}

TEST_F(GrammarsTest, OneThatIsTooExpensiveEndsItsOwnAnswerAlone) {
  BlockPool pool(generator_.block_pool().layout(), blocks_for(generator_.max_seq_len()) + 8);
  Engine engine({generator_.answer_parts(), generator_.forward(), pool}, {});
  EngineRequest plain{prompt("Say anything."), {}, {}, 0};
  plain.options.max_new_tokens = 8;
  EngineRequest expensive = plain;
  expensive.options.grammar = "root ::= a{200}\na ::= (b{100})\nb ::= [a-z]? [A-Z]? \" \"?";
  Heard heard, failed;
  engine.submit(plain, heard);
  engine.submit(expensive, failed);
  while (engine.step()) continue;
  EXPECT_NE(failed.error.find("grammar: too expensive"), std::string::npos) << failed.error;
  EXPECT_TRUE(failed.of_form);
  expect_as_alone(heard, generator_.generate(plain.prompt, plain.options, nullptr, nullptr, {}));
}

TEST_F(GrammarsTest, OneThatIsBeingCompiledHoldsUpNoOther) {
  Grammars grammars(generator_.loaded());
  GenerateOptions slow, quick;
  slow.grammar = "root ::= (";  // refused, after some tenths of a second
  for (int i = 0; i < 100'000; ++i) slow.grammar += "\"\" ";
  slow.grammar += "\"a\"){32768}";
  quick.grammar = "root ::= [a-z]+";
  grammars.prepare(quick);
  std::atomic<int> begun = 0, refused = 0;
  const auto prepare_slow = [&] {
    ++begun;
    try {
      grammars.prepare(slow);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kUsage) ++refused;
    }
  };
  std::thread first(prepare_slow), second(prepare_slow);
  while (begun < 2) std::this_thread::yield();
  int64_t meanwhile = 0;
  for (; refused == 0; ++meanwhile) {
    GenerateOptions other;
    other.grammar = "root ::= \"" + std::to_string(meanwhile % 8) + "\"";
    EXPECT_NE(grammars.constraint(quick), nullptr);
    EXPECT_NE(grammars.constraint(other), nullptr);
  }
  first.join();
  second.join();
  EXPECT_EQ(refused, 2);
  EXPECT_GT(meanwhile, 3);
  // It is known to be wrong now: no work a second time.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) prepare_slow();
  EXPECT_EQ(refused, 22);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

// The mask for an answer, as the set of allowed tokens.
std::vector<bool> allowed(GrammarConstraint& constraint, const std::vector<int32_t>& answer,
                          int64_t vocab) {
  const auto words = constraint.allowed(answer);
  std::vector<bool> set(static_cast<size_t>(vocab), words.empty());
  for (size_t t = 0; t < set.size() && t / 64 < words.size(); ++t) {
    set[t] = words[t / 64] >> (t % 64) & 1;
  }
  return set;
}

TEST_F(GrammarsTest, AThoughtMayStandBeforeTheForm) {
  const LoadedModel& loaded = generator_.loaded();
  const Tokenizer& tokenizer = loaded.tokenizer;
  const int64_t vocab = loaded.model.config.vocab_size;
  const auto id = [&](const char* text) { return tokenizer.encode(text).at(0); };
  // Any token may stand for <think>, which this model has not.
  const int32_t think = id("<|im_start|>"), digit = id("7"), word = id("hello"), end = id("END");
  const int32_t eos = loaded.model.config.eos_token_ids.front();
  GenerateOptions options;
  options.grammar = "root ::= [0-9]+";
  options.thinking_begin = "<|im_start|>";
  options.thinking_end = "END";
  const auto constraint = Grammars(loaded).constraint(options);
  auto first = allowed(*constraint, {}, vocab);
  EXPECT_TRUE(first[static_cast<size_t>(think)]);
  EXPECT_TRUE(first[static_cast<size_t>(digit)]);
  EXPECT_FALSE(first[static_cast<size_t>(word)]);
  auto within = allowed(*constraint, {think, word}, vocab);
  EXPECT_TRUE(within[static_cast<size_t>(word)]);
  EXPECT_FALSE(within[static_cast<size_t>(eos)]);
  auto behind = allowed(*constraint, {think, word, end}, vocab);
  EXPECT_FALSE(behind[static_cast<size_t>(word)]);
  EXPECT_FALSE(behind[static_cast<size_t>(think)]);
  EXPECT_TRUE(behind[static_cast<size_t>(digit)]);
  EXPECT_FALSE(behind[static_cast<size_t>(eos)]);
  EXPECT_TRUE(allowed(*constraint, {think, word, end, digit}, vocab)[static_cast<size_t>(eos)]);
  // A pure function of the answer, in whatever order it is asked.
  EXPECT_EQ(allowed(*constraint, {think, word}, vocab), within);
  EXPECT_EQ(allowed(*constraint, {digit, digit}, vocab)[static_cast<size_t>(word)], false);
  EXPECT_EQ(allowed(*constraint, {}, vocab), first);
  EXPECT_EQ(allowed(*constraint, {think, word, end}, vocab), behind);
  // A token that may not stand there: nothing follows, and what was before is as it was.
  const auto dead = allowed(*constraint, {think, word, end, word, digit}, vocab);
  EXPECT_EQ(std::count(dead.begin(), dead.end(), true), 0);
  EXPECT_EQ(allowed(*constraint, {think, word, end, digit, digit}, vocab),
            allowed(*constraint, {think, word, end, digit}, vocab));
  // The prompt ends within a thought.
  options.thinking_begin.clear();
  const auto open = Grammars(loaded).constraint(options);
  EXPECT_TRUE(allowed(*open, {}, vocab)[static_cast<size_t>(word)]);
  EXPECT_FALSE(allowed(*open, {word, end}, vocab)[static_cast<size_t>(word)]);
}

}  // namespace
}  // namespace orthrus
