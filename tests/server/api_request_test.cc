#include <gtest/gtest.h>

#include <cmath>

#include "server/api_json.h"
#include "server/api_test_support.h"

namespace orthrus {
namespace {

std::string chat_error(const std::string& members) {
  return api_error_of([&] { chat(members); });
}

std::string completion_error(const std::string& members) {
  return api_error_of([&] { completion(members); });
}

std::string body_error(const std::string& body) {
  return api_error_of([&] { parse_chat_request(body, test_context()); });
}

TEST(ApiRequest, AnEmptyRequestHasTheModelsDefaults) {
  const ChatRequest request = chat();
  EXPECT_EQ(request.options.max_new_tokens, -1);
  EXPECT_EQ(request.options.sampling.temperature, 0.6);
  EXPECT_EQ(request.options.sampling.top_k, 20);
  EXPECT_EQ(request.options.sampling.seed, 77u);
  EXPECT_TRUE(request.options.sampling.penalties_of_answer);
  EXPECT_TRUE(request.options.use_diffusion_mode);
  EXPECT_EQ(request.options.draft_max, -1);
  EXPECT_EQ(request.options.consensus, Consensus::kExact);
  EXPECT_FALSE(request.wants_logprobs());
  EXPECT_FALSE(request.stream);
  EXPECT_EQ(request.n, 1);
  EXPECT_EQ(request.context.dump(),
            R"({"messages":[{"role":"user","content":"Hi"}],"add_generation_prompt":true})");
  EXPECT_EQ(completion().options.max_new_tokens, 16);
}

TEST(ApiRequest, NullIsAbsent) {
  const ChatRequest request = chat(
      R"("max_tokens": null, "temperature": null, "stop": null, "n": null, "tools": null,
         "tool_choice": null, "response_format": null, "logit_bias": null, "stream_options": null,
         "functions": null, "seed": null, "logprobs": null, "top_logprobs": null)");
  EXPECT_EQ(request.options.max_new_tokens, -1);
  EXPECT_EQ(request.options.sampling.temperature, 0.6);
  EXPECT_EQ(request.n, 1);
}

TEST(ApiRequest, ReadsEveryParameter) {
  const ChatRequest request = chat(
      R"("model": "alias", "max_completion_tokens": 5, "temperature": 0, "top_p": 0.5, "top_k": -1,
         "min_p": 0.1, "seed": 9007199254740993, "n": 3, "stop": ["a", "b"],
         "presence_penalty": -1, "frequency_penalty": 2, "repetition_penalty": 1.5,
         "logit_bias": {"7": -100, "1023": 0.5}, "logprobs": true, "top_logprobs": 4,
         "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true},
         "user": "u", "metadata": {"a": "b"}, "store": false, "service_tier": "auto",
         "use_diffusion_mode": false, "draft_max": 7, "consensus": "kl",
         "consensus_threshold": 0.5, "priority": 3, "chat_template_kwargs":
         {"enable_thinking": false}, "grammar": "root ::= \"a\"", "parallel_tool_calls": true,
         "cache_prompt": false, "id_slot": 2, "skip_special_tokens": true,
         "include_stop_str_in_output": false, "modalities": ["text"])");
  const GenerateOptions& options = request.options;
  EXPECT_EQ(options.max_new_tokens, 5);
  EXPECT_EQ(options.sampling.temperature, 0);
  EXPECT_EQ(options.sampling.top_p, 0.5);
  EXPECT_EQ(options.sampling.top_k, 0);
  EXPECT_EQ(options.sampling.min_p, 0.1);
  EXPECT_EQ(options.sampling.seed, 9007199254740993u);  // no double on the way
  EXPECT_EQ(request.n, 3);
  EXPECT_EQ(options.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(options.sampling.presence_penalty, -1);
  EXPECT_EQ(options.sampling.frequency_penalty, 2);
  EXPECT_EQ(options.sampling.repeat_penalty, 1.5);
  EXPECT_EQ(options.sampling.repeat_last_n, -1);
  EXPECT_EQ(options.sampling.logit_bias,
            (std::vector<std::pair<int32_t, double>>{{7, -100}, {1023, 0.5}}));
  EXPECT_EQ(options.logprobs, 4);
  EXPECT_FALSE(options.prompt_logprobs);
  EXPECT_TRUE(options.ignore_eos);
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.include_usage);
  EXPECT_FALSE(options.use_diffusion_mode);
  EXPECT_EQ(options.draft_max, 7);
  EXPECT_EQ(options.consensus, Consensus::kKl);
  EXPECT_EQ(options.consensus_threshold, 0.5);
  EXPECT_EQ(request.priority, 3);
  EXPECT_EQ(request.context["enable_thinking"], false);
  EXPECT_EQ(options.grammar, "root ::= \"a\"");
  EXPECT_EQ(request.choice_options(2).sampling.choice, 2u);
}

// Nobody goes before others by asking for it.
TEST(ApiRequest, PriorityOnlyLowers) {
  EXPECT_EQ(chat().priority, 0);
  EXPECT_EQ(completion(R"("priority": 1000)").priority, 1000);
  for (const char* value : {"-1", "-1000", "1001"}) {
    EXPECT_EQ(
        api_error_of([&] { chat(R"("priority": )" + std::string(value)); }),
        "400 priority invalid_value: priority: expected a whole number from 0 to 1000, found " +
            std::string(value) + ".");
  }
}

TEST(ApiRequest, EachNameOfThePenaltyLooksBackAsWhereItComesFrom) {
  EXPECT_EQ(chat(R"("repeat_penalty": 1.2)").options.sampling.repeat_last_n, 64);
  EXPECT_EQ(chat(R"("repeat_penalty": 0.001)").options.sampling.repeat_penalty, 0.001);
  EXPECT_EQ(chat(R"("repeat_penalty": 1.2)").options.sampling.repeat_penalty, 1.2);
  EXPECT_EQ(chat(R"("repetition_penalty": 1.2)").options.sampling.repeat_last_n, -1);
  EXPECT_EQ(chat(R"("repetition_penalty": 1.2, "repeat_last_n": 9)").options.sampling.repeat_last_n,
            9);
  EXPECT_EQ(chat(R"("seed": -1)").options.sampling.seed, 77u);
  EXPECT_EQ(chat(R"("max_tokens": 4.0)").options.max_new_tokens, 4);  // as JSON Schema has it
}

TEST(ApiRequest, PromptsOfACompletion) {
  using Ids = std::vector<int32_t>;
  const auto prompts = [](const std::string& prompt) {
    return parse_completion_request(R"({"prompt": )" + prompt + "}", test_context()).prompts;
  };
  EXPECT_EQ(std::get<std::string>(prompts(R"("a")").at(0)), "a");
  EXPECT_EQ(std::get<std::string>(prompts(R"(["a", ""])").at(1)), "");
  EXPECT_EQ(std::get<Ids>(prompts("[1, 2]").at(0)), (Ids{1, 2}));
  EXPECT_EQ(prompts("[1, 2]").size(), 1u);
  EXPECT_EQ(std::get<Ids>(prompts("[[1], [2, 3]]").at(1)), (Ids{2, 3}));
  const auto error = [&](const std::string& prompt) {
    return api_error_of([&] { prompts(prompt); });
  };
  EXPECT_EQ(error("[]"),
            "400 prompt invalid_value: prompt: expected a text, a list of texts, token ids, or a "
            "list of those, found an empty list.");
  EXPECT_EQ(error("3").substr(0, 26), "400 prompt invalid_value: ");
  EXPECT_EQ(error(R"(["a", 1])"),
            "400 prompt[1] invalid_value: prompt[1]: expected a text, found 1.");
  EXPECT_EQ(error(R"([[1], "a"])"),
            "400 prompt[1] invalid_value: prompt[1]: expected token ids, found \"a\".");
  EXPECT_EQ(error("[1, 1024]"),
            "400 prompt invalid_value: prompt[1]: expected a token id from 0 to 1023, found 1024.");
  EXPECT_EQ(error("[1, -1]").substr(0, 26), "400 prompt invalid_value: ");
  EXPECT_EQ(error("[1, 1.5]").substr(0, 26), "400 prompt invalid_value: ");
  EXPECT_EQ(error("[[[1]]]").substr(0, 29), "400 prompt[0] invalid_value: ");
  EXPECT_EQ(error("[1, 18446744073709551615]").substr(0, 26), "400 prompt invalid_value: ");
}

TEST(ApiRequest, WhatEvaluationsSend) {  // lm-evaluation-harness, local-completions
  const CompletionRequest request = parse_completion_request(
      R"({"model": "tiny", "prompt": [[1, 2, 3], [4, 5]], "temperature": 0, "max_tokens": 1,
          "logprobs": 1, "seed": 1234, "echo": true})",
      test_context());
  EXPECT_TRUE(request.echo);
  EXPECT_EQ(request.options.logprobs, 1);
  EXPECT_TRUE(request.options.prompt_logprobs);
  EXPECT_EQ(request.prompts.size(), 2u);
  EXPECT_FALSE(completion(R"("echo": true)").options.prompt_logprobs);
  EXPECT_EQ(completion(R"("max_tokens": 0, "echo": true)").options.max_new_tokens, 0);
}

struct BadBody {
  const char* members;
  const char* error;
};

TEST(ApiRequest, NamesWhatIsWrong) {
  const BadBody bodies[] = {
      {R"("temperatur": 1)",
       "400 temperatur unknown_parameter: Unknown parameter: temperatur (the nearest is "
       "temperature)."},
      {R"("best_of": 1)", "400 best_of unknown_parameter: Unknown parameter: best_of."},
      {R"("temperature": "hot")",
       "400 temperature invalid_value: temperature: expected a number from 0 to 100, found "
       "\"hot\"."},
      {R"("temperature": -0.1)",
       "400 temperature invalid_value: temperature: expected a number from 0 to 100, found -0.1."},
      {R"("top_p": 0)",
       "400 top_p invalid_value: top_p: expected a number above 0 up to 1, found 0."},
      {R"("max_tokens": 0)",
       "400 max_tokens invalid_value: max_tokens: expected a whole number from 1 to 2147483647, "
       "found 0."},
      {R"("max_tokens": 1.5)",
       "400 max_tokens invalid_value: max_tokens: expected a whole number from 1 to 2147483647, "
       "found 1.5."},
      {R"("max_tokens": 1, "max_completion_tokens": 2)",
       "400 max_tokens invalid_value: max_tokens and max_completion_tokens mean the same and "
       "differ."},
      {R"("seed": 18446744073709551615)",
       "400 seed invalid_value: seed: expected a whole number from -1 to 9223372036854775807, "
       "found 18446744073709551615."},
      {R"("n": 17)", "400 n invalid_value: n: expected a whole number from 1 to 16, found 17."},
      {R"("stream": 1)", "400 stream invalid_value: stream: expected true or false, found 1."},
      {R"("stream_options": {"include_usage": true})",
       "400 stream_options invalid_value: stream_options is for \"stream\": true only."},
      {R"("stream": true, "stream_options": {"include_use": true})",
       "400 stream_options.include_use unknown_parameter: Unknown parameter: "
       "stream_options.include_use (the nearest is include_usage)."},
      {R"("stop": [""])",
       "400 stop invalid_value: stop[0]: expected a text of 1 to 1024 bytes, found \"\"."},
      {R"("stop": [[]])",
       "400 stop invalid_value: stop[0]: expected a text of 1 to 1024 bytes, found an empty "
       "list."},
      {R"("logit_bias": {"1024": 1})",
       "400 logit_bias invalid_value: logit_bias.1024: expected a token id from 0 to 1023 as key."},
      {R"("logit_bias": {" 1": 1})",
       "400 logit_bias invalid_value: logit_bias. 1: expected a token id from 0 to 1023 as key."},
      {R"("logit_bias": {"1": 101})",
       "400 logit_bias invalid_value: logit_bias.1: expected a number from -100 to 100, found "
       "101."},
      {R"("top_logprobs": 1)",
       "400 top_logprobs invalid_value: top_logprobs is for \"logprobs\": true only."},
      {R"("logprobs": 5)",
       "400 logprobs invalid_value: logprobs: expected true or false, found 5."},
      {R"("model": "gpt-4")",
       "404 model model_not_found: The model \"gpt-4\" is not served here; these are: \"tiny\", "
       "\"alias\"."},
      {R"("store": true)",
       "400 store unsupported_parameter: store is not supported: answers are not kept."},
      {R"("n_probs": 5)",
       "400 n_probs unsupported_parameter: n_probs is not supported: use logprobs and "
       "top_logprobs."},
      {R"("skip_special_tokens": false)",
       "400 skip_special_tokens unsupported_parameter: skip_special_tokens is not supported: "
       "special "
       "tokens are never in the text."},
      {R"("service_tier": "flex")",
       "400 service_tier invalid_value: service_tier: expected one of \"auto\", \"default\", found "
       "\"flex\"."},
      {R"("functions": [])",
       "400 functions unsupported_parameter: functions is not supported: use tools."},
      {R"("modalities": ["audio"])",
       "400 modalities invalid_value: modalities: expected [\"text\"], found a list."},
      {R"("consensus": "most")",
       "400 consensus invalid_value: consensus: expected one of \"exact\", \"rejection\", \"kl\", "
       "found \"most\"."},
      {R"("repeat_penalty": 5e-324)",
       "400 repeat_penalty invalid_value: repeat_penalty: expected a number from 0.001 to 100, "
       "found 5e-324."},
      {R"("repetition_penalty": 1, "repeat_penalty": 2)",
       "400 repeat_penalty invalid_value: repetition_penalty and repeat_penalty mean the same and "
       "differ."},
      {R"("response_format": {"type": "json"})",
       "400 response_format.type invalid_value: response_format.type: expected one of \"text\", "
       "\"json_object\", \"json_schema\", found \"json\"."},
      {R"("response_format": {"type": "json_schema", "json_schema": {"schema": {}}})",
       "400 response_format.json_schema.name missing_required_parameter: "
       "response_format.json_schema.name: expected 1 to 64 letters, digits, _ or -, found "
       "nothing."},
      {R"("response_format": {"type": "json_object"}, "grammar": "root ::= \"a\"")",
       "400 grammar invalid_value: grammar and response_format cannot both decide the answer's "
       "form."},
      {R"("chat_template_kwargs": {"messages": []})",
       "400 chat_template_kwargs.messages invalid_value: chat_template_kwargs.messages: messages "
       "is a parameter of its own."},
      {R"("continue_final_message": true)",
       "400 continue_final_message invalid_value: continue_final_message: the last message must "
       "be an assistant's text."},
  };
  for (const BadBody& body : bodies) EXPECT_EQ(chat_error(body.members), body.error);
}

TEST(ApiRequest, NamesWhatIsWrongInACompletion) {
  const BadBody bodies[] = {
      {R"("suffix": "x")",
       "400 suffix unsupported_parameter: suffix is not supported: the model writes at the end "
       "only."},
      {R"("best_of": 2)", "400 best_of invalid_value: best_of: expected n, which is 1, found 2."},
      {R"("logprobs": 21)",
       "400 logprobs invalid_value: logprobs: expected a whole number from 0 to 20, found 21."},
      {R"("messages": [])", "400 messages unknown_parameter: Unknown parameter: messages."},
      {R"("echo": true, "logprobs": 1, "stream": true)",
       "400 stream unsupported_parameter: echo with logprobs is for answers in one piece, not for "
       "streams."},
  };
  for (const BadBody& body : bodies) EXPECT_EQ(completion_error(body.members), body.error);
  EXPECT_EQ(completion_error(R"("n": 2, "best_of": 2)"), "no error");
  std::string many = "[\"\"";
  for (int i = 0; i < 100; ++i) many += ",\"\"";
  EXPECT_EQ(
      api_error_of([&] {
        parse_completion_request(R"({"n": 16, "prompt": )" + many + "]}", test_context());
      }),
      "400 n invalid_value: 101 prompts with 16 answers each, expected at most 1024 answers.");
}

TEST(ApiRequest, BodiesThatAreNoJson) {
  EXPECT_EQ(body_error(""), "400 - -: The body is empty, expected a JSON object.");
  EXPECT_EQ(body_error("[]"), "400 - -: The body: expected an object, found an empty list.");
  EXPECT_EQ(body_error("{"), "400 - -: The body is not valid JSON (at byte 2).");
  EXPECT_EQ(body_error(chat_body(R"("seed": 1, "seed": 2)")),
            "400 seed -: The key \"seed\" occurs twice in one object.");
  EXPECT_EQ(body_error(R"({"messages": [{"role": "user", "role": "tool", "content": ""}]})"),
            "400 role -: The key \"role\" occurs twice in one object.");
  EXPECT_NE(body_error(chat_body(R"("temperature": NaN)")).find("not valid JSON"),
            std::string::npos);
  EXPECT_NE(body_error(chat_body(R"("temperature": 1e999)")).find("not valid JSON"),
            std::string::npos);
  EXPECT_NE(body_error(chat_body("\"user\": \"\xff\"")).find("not valid JSON"), std::string::npos);
  EXPECT_NE(body_error(chat_body(R"("user": "\ud800")")).find("not valid JSON"), std::string::npos);
  EXPECT_NE(body_error(chat_body() + "{}").find("not valid JSON"), std::string::npos);
  const std::string deep(100'000, '[');
  EXPECT_EQ(body_error(chat_body("\"metadata\": " + deep)),
            "400 - -: The body is nested deeper than 64 levels.");
  std::string wide = "{\"a\": {";
  for (int i = 0; i < 600; ++i) wide += "\"" + std::to_string(i) + "\": 1,";
  EXPECT_EQ(body_error(wide), "400 - -: An object has more than 512 keys.");
  std::string many = "{\"prompt\": [0";
  for (int i = 0; i < 1'000'000; ++i) many += ",0";
  EXPECT_EQ(body_error(many + "]}"), "400 - -: The body holds more than 1000000 values.");
  // In time: a callback of the parser took minutes for these.
  std::string objects = "{\"prompt\": [{}";
  for (int i = 0; i < 500'000; ++i) objects += ",{}";
  EXPECT_NE(body_error(objects + "]}"), "no error");
  // A key of another object is no duplicate.
  EXPECT_EQ(chat_error(R"("metadata": {"user": "a"}, "user": "b")"), "no error");
}

TEST(ApiRequest, AMessageNeverHoldsALineOrControlCharacters) {
  const std::string error = chat_error(R"("temp\n\u0001\u00e9": 1)");
  EXPECT_EQ(error, "400 temp???? unknown_parameter: Unknown parameter: temp????.");
}

TEST(ApiRequest, JsonFormsBecomeSchemas) {
  EXPECT_EQ(chat(R"("response_format": {"type": "text"})").options.json_schema, "");
  EXPECT_EQ(chat(R"("response_format": {"type": "json_object"})").options.json_schema,
            R"({"type":"object"})");
  // The order of keys is the order of the answer.
  EXPECT_EQ(chat(R"("response_format": {"type": "json_schema", "json_schema": {"name": "n",
                    "strict": true, "schema": {"type": "object", "properties":
                    {"z": {"type": "string"}, "a": {"type": "null"}}}}})")
                .options.json_schema,
            R"({"type":"object","properties":{"z":{"type":"string"},"a":{"type":"null"}}})");
}

TEST(ApiRequest, SaysOnlyWhatIsNotTheServersDefault) {
  ApiContext context = test_context();
  context.defaults.draft_max = 3;
  context.defaults.consensus = Consensus::kKl;
  context.defaults.consensus_threshold = 0.5;
  context.defaults.max_new_tokens = 9;
  context.defaults.stop = {"END"};
  context.defaults.grammar = "root ::= [0-9]";
  context.defaults.sampling.presence_penalty = 0.5;
  const GenerateOptions usual = parse_chat_request(chat_body(), context).options;
  EXPECT_EQ(usual.draft_max, 3);
  EXPECT_EQ(usual.consensus, Consensus::kKl);
  EXPECT_EQ(usual.consensus_threshold, 0.5);
  EXPECT_EQ(usual.max_new_tokens, 9);
  EXPECT_EQ(usual.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(usual.grammar, "root ::= [0-9]");
  EXPECT_EQ(usual.sampling.presence_penalty, 0.5);
  const GenerateOptions said =
      parse_chat_request(chat_body(R"("draft_max": -1, "consensus": "exact", "max_tokens": 4,
          "consensus_threshold": 0.1, "stop": "X", "presence_penalty": 0,
          "response_format": {"type": "json_object"})"),
                         context)
          .options;
  EXPECT_EQ(said.draft_max, -1);
  EXPECT_EQ(said.consensus, Consensus::kExact);
  EXPECT_EQ(said.consensus_threshold, 0.1);
  EXPECT_EQ(said.max_new_tokens, 4);
  EXPECT_EQ(said.stop, std::vector<std::string>{"X"});
  EXPECT_EQ(said.grammar, "");
  EXPECT_EQ(said.json_schema, R"({"type":"object"})");
  EXPECT_EQ(said.sampling.presence_penalty, 0);
}

TEST(ApiRequest, WhereAnAnswerEnds) {
  const GenerateOptions options =
      chat(R"("min_tokens": 3, "max_tokens": 3, "stop_token_ids": [7, 1023])").options;
  EXPECT_EQ(options.min_new_tokens, 3);
  EXPECT_EQ(options.stop_token_ids, (std::vector<int32_t>{7, 1023}));
  EXPECT_EQ(
      completion_error(R"("min_tokens": 17)"),
      "400 min_tokens invalid_value: min_tokens: expected at most max_tokens, which is 16 here, "
      "found 17.");
  EXPECT_EQ(chat_error(R"("min_tokens": 17)"), "no error");
  EXPECT_EQ(chat_error(R"("min_tokens": 1, "grammar": "root ::= \"a\"")"),
            "400 min_tokens invalid_value: min_tokens: the form of the answer alone says where it "
            "may end.");
  EXPECT_EQ(chat_error(R"("min_tokens": -1)"),
            "400 min_tokens invalid_value: min_tokens: expected a whole number from 0 to "
            "2147483647, found -1.");
  EXPECT_EQ(chat_error(R"("stop_token_ids": [1024])"),
            "400 stop_token_ids invalid_value: stop_token_ids[0]: expected a token id from 0 to "
            "1023, found 1024.");
}

TEST(ApiErrors, OfTheEngineAndTheirBodies) {
  EXPECT_EQ(error_body(api_error(Error(ErrorKind::kInput, "too long"), "messages")),
            R"({"error":{"message":"too long","type":"invalid_request_error",)"
            R"("param":"messages","code":null}})");
  const ApiError internal = api_error(Error(ErrorKind::kInternal, "secret"));
  EXPECT_EQ(internal.status, 500);
  EXPECT_EQ(std::string(internal.what()).find("secret"), std::string::npos);
  EXPECT_EQ(queue_full().status, 429);
  EXPECT_STREQ(model_not_found("x", {"a", "b", "c", "d", "e"}).what(),
               "The model \"x\" is not served here; these are: \"a\", \"b\", \"c\" and 2 more.");
  EXPECT_EQ(unsupported_endpoint("/v1/embeddings").status, 404);
  const HttpAnswer loading = error_answer(not_ready("The model is being loaded."));
  EXPECT_EQ(loading.status, 503);
  EXPECT_EQ(loading.body,
            R"({"error":{"message":"The model is being loaded.","type":"unavailable_error",)"
            R"("param":null,"code":"unavailable"}})");
  EXPECT_EQ(loading.headers, (HttpHeaders{{"retry-after", "1"}}));
  EXPECT_TRUE(error_answer(too_many_answers(40, 20)).headers.empty());
  EXPECT_EQ(error_answer(timed_out()).headers, (HttpHeaders{{"x-should-retry", "false"}}));
}

}  // namespace
}  // namespace orthrus
