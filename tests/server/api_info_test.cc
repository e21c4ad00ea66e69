#include "server/api_info.h"

#include <gtest/gtest.h>

#include "server/api_test_support.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

TEST(ApiInfo, Models) {
  const ModelCard card = {{"tiny", "alias"}, 1700000000, 4096, true};
  EXPECT_EQ(
      models_body(card).dump(),
      R"({"object":"list","data":[{"id":"tiny","object":"model","created":1700000000,)"
      R"("owned_by":"orthrus","max_model_len":4096,"dual_view":true},{"id":"alias","object":"model",)"
      R"("created":1700000000,"owned_by":"orthrus","max_model_len":4096,"dual_view":true}]})");
  EXPECT_EQ(model_body(card, "alias")["id"], "alias");
  EXPECT_EQ(api_error_of([&] { model_body(card, "x"); }),
            "404 model model_not_found: The model \"x\" is not served here; these are: \"tiny\", "
            "\"alias\".");
}

TEST(ApiInfo, Health) {
  EXPECT_EQ(health_body(ServerState::kReady).dump(), R"({"status":"ok"})");
  EXPECT_EQ(health_body(ServerState::kLoading).dump(), R"({"status":"loading"})");
  EXPECT_EQ(health_body(ServerState::kDraining).dump(), R"({"status":"draining"})");
  EXPECT_EQ(health_status(ServerState::kReady), 200);
  EXPECT_EQ(health_status(ServerState::kDraining), 503);
}

std::string tokenize(const std::string& body) {
  const TokenizeRequest request = parse_tokenize_request(body, test_context());
  const auto ids = tiny_tokenizer().encode(request.text, request.add_special);
  return tokenize_body(request, ids, tiny_tokenizer(), 4096).dump();
}

TEST(ApiInfo, TokenizesInBothForms) {
  EXPECT_EQ(tokenize(R"({"content": "Hi"})"),
            R"({"tokens":[39,72],"count":2,"max_model_len":4096})");
  EXPECT_EQ(
      tokenize(R"({"content": "ié", "with_pieces": true})"),
      R"({"tokens":[{"id":72,"piece":"i"},{"id":127,"piece":[195]},{"id":102,"piece":[169]}],)"
      R"("count":3,"max_model_len":4096})");
  EXPECT_EQ(tokenize(R"({"model": "tiny", "prompt": "Hi", "return_token_strs": true})"),
            R"({"tokens":[39,72],"count":2,"max_model_len":4096,"token_strs":["H","i"]})");
  const auto special = [](const std::string& body) {
    return parse_tokenize_request(body, test_context()).add_special;
  };
  EXPECT_FALSE(special(R"({"content": ""})"));
  EXPECT_TRUE(special(R"({"content": "", "add_special": true})"));
  EXPECT_TRUE(special(R"({"prompt": ""})"));
  EXPECT_FALSE(special(R"({"prompt": "", "add_special_tokens": false})"));
  EXPECT_FALSE(special(R"({"messages": [{"role": "user", "content": "Hi"}]})"));
  EXPECT_EQ(
      parse_tokenize_request(R"({"messages": [{"role": "user", "content": "Hi"}]})", test_context())
          .context["add_generation_prompt"],
      true);
  EXPECT_EQ(api_error_of([] { parse_tokenize_request("{}", test_context()); }),
            "400 content missing_required_parameter: Expected one of content, prompt and messages, "
            "found none.");
  EXPECT_EQ(api_error_of([] {
              parse_tokenize_request(R"({"content": "", "parse_special": false})", test_context());
            }),
            "400 parse_special unsupported_parameter: parse_special is not supported: special "
            "tokens in a text become their ids.");
}

TEST(ApiInfo, Detokenizes) {
  const auto ids = parse_detokenize_request(R"({"tokens": [39, 127, 102, 127]})", test_context());
  EXPECT_EQ(detokenize_body(ids, tiny_tokenizer()).dump(),
            "{\"content\":\"Hé\xef\xbf\xbd\",\"prompt\":\"Hé\xef\xbf\xbd\"}");
  EXPECT_EQ(api_error_of([] { parse_detokenize_request(R"({"tokens": [-1]})", test_context()); }),
            "400 tokens invalid_value: tokens[0]: expected a token id from 0 to 1023, found -1.");
  EXPECT_EQ(api_error_of([] { parse_detokenize_request("{}", test_context()); }),
            "400 tokens missing_required_parameter: tokens: expected a list of token ids, found "
            "nothing.");
}

class OpenApi : public testing::Test {
 protected:
  const Json document = Json::parse(openapi_json());

  const Json& properties(const std::string& name) {
    return document["components"]["schemas"][name]["properties"];
  }
};

// A body with one member more than a request needs.
std::string chat_error(const std::string& name, const Json& value) {
  if (name == "messages") return "no error";
  const std::string stream = name == "stream_options" ? "\"stream\": true, " : "";
  const std::string logprobs = name == "top_logprobs" ? "\"logprobs\": true, " : "";
  return api_error_of([&] { chat(stream + logprobs + Json(name).dump() + ": " + value.dump()); });
}

std::string completion_error(const std::string& name, const Json& value) {
  if (name == "prompt") return "no error";
  const std::string stream = name == "stream_options" ? "\"stream\": true, " : "";
  const std::string n = name == "min_tokens" ? "\"max_tokens\": 2147483647, "
                        : name == "best_of"  ? "\"n\": " + value.dump() + ", "
                                             : "";
  return api_error_of([&] { completion(stream + n + Json(name).dump() + ": " + value.dump()); });
}

using MemberError = std::string (*)(const std::string&, const Json&);

void check_ranges(const Json& properties, MemberError error_of) {
  int limits = 0;
  for (const auto& [name, schema] : properties.items()) {
    EXPECT_EQ(error_of(name, nullptr), "no error") << name;  // known, and null is absent
    for (const char* end : {"minimum", "maximum"}) {
      if (!schema.contains(end)) continue;
      ++limits;
      const Json& limit = schema[end];
      EXPECT_EQ(error_of(name, limit), "no error") << name << " " << limit;
      if (limit == INT64_MAX) continue;
      const double step = end == std::string("minimum") ? -1 : 1;
      const Json outside = limit.is_number_float()
                               ? Json(limit.get<double>() + step)
                               : Json(limit.get<int64_t>() + static_cast<int>(step));
      EXPECT_NE(error_of(name, outside), "no error") << name << " " << outside;
    }
    if (schema.contains("exclusiveMinimum")) {
      EXPECT_NE(error_of(name, schema["exclusiveMinimum"]), "no error") << name;
    }
    if (schema.contains("enum")) {
      for (const Json& value : schema["enum"]) EXPECT_EQ(error_of(name, value), "no error") << name;
    }
  }
  EXPECT_GT(limits, 20);
}

TEST_F(OpenApi, SaysWhatRequestsMayHold) {
  check_ranges(properties("ChatRequest"), chat_error);
  check_ranges(properties("CompletionRequest"), completion_error);
}

// What clients of OpenAI, vLLM and llama-server may send beside: in the document, or refused.
TEST_F(OpenApi, HoldsWhatIsAccepted) {
  const char* names[] = {"audio",
                         "best_of",
                         "cache_prompt",
                         "echo",
                         "function_call",
                         "functions",
                         "grammar",
                         "guided_choice",
                         "guided_grammar",
                         "guided_json",
                         "guided_regex",
                         "include_reasoning",
                         "json_schema",
                         "length_penalty",
                         "logit_bias",
                         "logprobs",
                         "max_completion_tokens",
                         "max_tokens",
                         "messages",
                         "metadata",
                         "min_tokens",
                         "mirostat",
                         "modalities",
                         "model",
                         "n",
                         "n_predict",
                         "parallel_tool_calls",
                         "prediction",
                         "priority",
                         "prompt",
                         "prompt_cache_key",
                         "prompt_cache_retention",
                         "prompt_logprobs",
                         "reasoning_effort",
                         "repeat_penalty",
                         "request_id",
                         "response_format",
                         "safety_identifier",
                         "seed",
                         "service_tier",
                         "stop",
                         "stop_token_ids",
                         "store",
                         "stream",
                         "stream_options",
                         "structured_outputs",
                         "suffix",
                         "temperature",
                         "thinking",
                         "tool_choice",
                         "tools",
                         "top_k",
                         "top_logprobs",
                         "top_p",
                         "truncate_prompt_tokens",
                         "typical_p",
                         "use_beam_search",
                         "user",
                         "verbosity",
                         "web_search_options"};
  const auto accepted = [](const std::string& error) {
    return error.find("unknown_parameter") == error.npos &&
           error.find("unsupported_parameter") == error.npos;
  };
  for (const std::string name : names) {
    const Json value = Json::parse("[[[]]]");  // wrong for all of them
    EXPECT_EQ(accepted(chat_error(name, value)), properties("ChatRequest").contains(name)) << name;
    EXPECT_EQ(accepted(completion_error(name, value)),
              properties("CompletionRequest").contains(name))
        << name;
  }
}

TEST_F(OpenApi, ForbidsOtherMembersAndDocumentsErrors) {
  EXPECT_EQ(document["openapi"], "3.1.0");
  for (const char* name : {"ChatRequest", "CompletionRequest", "DetokenizeRequest"}) {
    EXPECT_EQ(document["components"]["schemas"][name]["additionalProperties"], false);
  }
  for (const char* path : {"/v1/chat/completions", "/v1/completions"}) {
    for (const char* status : {"200", "400", "401", "404", "405", "413", "429", "500", "503"}) {
      EXPECT_TRUE(document["paths"][path]["post"]["responses"].contains(status)) << path << status;
    }
  }
}

// No reference leads nowhere.
TEST_F(OpenApi, IsWhole) {
  std::vector<const Json*> open = {&document};
  int references = 0;
  while (!open.empty()) {
    const Json& value = *open.back();
    open.pop_back();
    if (value.is_object() && value.contains("$ref") && value["$ref"].is_string()) {
      const std::string target = value["$ref"];
      ASSERT_EQ(target.front(), '#');
      EXPECT_TRUE(document.contains(Json::json_pointer(target.substr(1)))) << target;
      ++references;
    }
    if (value.is_structured()) {
      for (const Json& child : value) open.push_back(&child);
    }
  }
  EXPECT_GT(references, 50);
}

}  // namespace
}  // namespace orthrus
