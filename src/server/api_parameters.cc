#include "server/api_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "formats/printable.h"
#include "server/api_form.h"

namespace orthrus {

using Json = nlohmann::ordered_json;

namespace {

constexpr size_t kMaxStops = 64;
constexpr size_t kMaxStopBytes = 1024;
constexpr size_t kMaxName = 512;
constexpr int64_t kMaxInt = INT32_MAX;
constexpr double kLeastRepeatPenalty = 1e-3;  // logits are divided by it

// The value of whichever of two names is there; both must agree.
double either_number(ObjectReader& body, const char* name, const char* alias, double least,
                     double most, double otherwise) {
  const double first = body.number(name, least, most, otherwise);
  const double second = body.number(alias, least, most, otherwise);
  if (body.has(name) && body.has(alias) && first != second) {
    throw bad_request(fmt::format("{} and {} mean the same and differ.", name, alias), alias,
                      "invalid_value");
  }
  return body.has(name) ? first : second;
}

void read_penalties(ObjectReader& body, SamplingOptions& sampling) {
  // OpenAI's and vLLM's meaning: of the whole answer, of nothing else.
  sampling.penalties_of_answer = true;
  sampling.presence_penalty = body.number("presence_penalty", -2, 2, sampling.presence_penalty);
  sampling.frequency_penalty = body.number("frequency_penalty", -2, 2, sampling.frequency_penalty);
  // Each name looks back as far as where it comes from: all of it (Transformers, vLLM), or the
  // window of llama.cpp.
  sampling.repeat_penalty = either_number(body, "repetition_penalty", "repeat_penalty",
                                          kLeastRepeatPenalty, 100, sampling.repeat_penalty);
  if (body.has("repetition_penalty")) sampling.repeat_last_n = -1;
  sampling.repeat_last_n = body.integer("repeat_last_n", -1, kMaxInt, sampling.repeat_last_n);
}

void read_logit_bias(ObjectReader& body, const ApiContext& context, SamplingOptions& sampling) {
  const Json* map = body.object("logit_bias");
  if (!map) return;
  for (const auto& [key, bias] : map->items()) {
    const std::string path = fmt::format("logit_bias.{}", printable(key));
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool whole = error == std::errc() && end == key.data() + key.size();
    if (!whole || id < 0 || id >= context.vocab_size) {
      throw bad_request(
          fmt::format("{}: expected a token id from 0 to {} as key.", path, context.vocab_size - 1),
          "logit_bias", "invalid_value");
    }
    if (!bias.is_number() || std::abs(bias.get<double>()) > 100) {
      throw bad_request(
          fmt::format("{}: expected a number from -100 to 100, found {}.", path, shown(bias)),
          "logit_bias", "invalid_value");
    }
    sampling.logit_bias.emplace_back(static_cast<int32_t>(id), bias.get<double>());
  }
}

void read_sampling(ObjectReader& body, const ApiContext& context, SamplingOptions& sampling) {
  sampling.temperature = body.number("temperature", 0, 100, sampling.temperature);
  sampling.top_p = body.number("top_p", 0, 1, sampling.top_p, true);
  sampling.top_k = std::max<int64_t>(0, body.integer("top_k", -1, kMaxInt, sampling.top_k));
  sampling.min_p = body.number("min_p", 0, 1, sampling.min_p);
  const int64_t seed = body.integer("seed", -1, INT64_MAX, -1);
  sampling.seed = seed < 0 ? context.seed : static_cast<uint64_t>(seed);
  read_penalties(body, sampling);
  read_logit_bias(body, context, sampling);
}

void add_stop(const Json& stop, const std::string& path, std::vector<std::string>& stops) {
  const bool good = stop.is_string() && !stop.get_ref<const std::string&>().empty() &&
                    stop.get_ref<const std::string&>().size() <= kMaxStopBytes;
  if (!good) {
    throw bad_request(fmt::format("{}: expected a text of 1 to {} bytes, found {}.", path,
                                  kMaxStopBytes, shown(stop)),
                      "stop", "invalid_value");
  }
  stops.push_back(stop.get<std::string>());
}

void read_stop(ObjectReader& body, std::vector<std::string>& stops) {
  const Json* stop = body.find("stop");
  if (!stop) return;
  stops.clear();
  if (!stop->is_array()) return add_stop(*stop, "stop", stops);
  body.array("stop", kMaxStops);
  for (size_t i = 0; i < stop->size(); ++i) add_stop((*stop)[i], fmt::format("stop[{}]", i), stops);
}

void read_drafting(ObjectReader& body, GenerateOptions& options) {
  options.use_diffusion_mode = body.boolean("use_diffusion_mode", options.use_diffusion_mode);
  options.draft_max = body.integer("draft_max", -1, kMaxInt, options.draft_max);
  constexpr std::array kRules = {Consensus::kExact, Consensus::kRejection, Consensus::kKl};
  const auto usual = std::find(kRules.begin(), kRules.end(), options.consensus) - kRules.begin();
  options.consensus = kRules[static_cast<size_t>(
      body.choice("consensus", {"exact", "rejection", "kl"}, static_cast<int>(usual)))];
  options.consensus_threshold =
      body.number("consensus_threshold", 0, 1e6, options.consensus_threshold, true);
}

// Tokens that end the answer, and how many come before.
void read_end(ObjectReader& body, const ApiContext& context, GenerationRequest& request) {
  GenerateOptions& options = request.options;
  read_stop(body, options.stop);
  options.ignore_eos = body.boolean("ignore_eos", options.ignore_eos);
  if (const Json* ids = body.array("stop_token_ids", kMaxStops)) {
    options.stop_token_ids = read_token_ids(*ids, "stop_token_ids", context);
  }
  options.min_new_tokens = body.integer("min_tokens", 0, kMaxInt, options.min_new_tokens);
}

void read_stream(ObjectReader& body, GenerationRequest& request) {
  request.stream = body.boolean("stream", false);
  const Json* member = body.object("stream_options");
  if (!member) return;
  if (!request.stream) {
    throw bad_request("stream_options is for \"stream\": true only.", "stream_options",
                      "invalid_value");
  }
  ObjectReader options(*member, "stream_options");
  request.include_usage = options.boolean("include_usage", false);
  options.boolean("include_obfuscation", false);  // padding against eavesdroppers: never sent
  options.finish();
}

// None of these can change the answer of this server.
void read_without_effect(ObjectReader& body) {
  body.string("user", kMaxName);
  body.string("safety_identifier", kMaxName);
  body.string("prompt_cache_key", kMaxName);
  body.object("metadata");
  body.choice("service_tier", {"auto", "default"}, 0);
  if (body.boolean("store", false)) body.refuse("store", "answers are not kept");
  // llama-server's and vLLM's, with the value that this server always has.
  body.boolean("cache_prompt", true);
  body.integer("id_slot", -1, kMaxInt, -1);
  if (!body.boolean("skip_special_tokens", true)) {
    body.refuse("skip_special_tokens", "special tokens are never in the text");
  }
  if (body.boolean("include_stop_str_in_output", false)) {
    body.refuse("include_stop_str_in_output", "stop strings are never in the text");
  }
}

void refuse_foreign(ObjectReader& body) {
  body.refuse("json_schema", "use response_format");
  body.refuse("prompt_logprobs", "completions have echo with logprobs");
  body.refuse("reasoning_format", "thoughts are always in reasoning_content");
  body.refuse("n_probs", "use logprobs and top_logprobs");
  body.refuse("return_token_ids", "/tokenize says what they are");
  body.refuse("truncate_prompt_tokens", "shorten the prompt");
}

}  // namespace

GenerateOptions GenerationRequest::choice_options(int64_t choice) const {
  GenerateOptions result = options;
  result.sampling.choice = static_cast<uint32_t>(choice);
  return result;
}

void read_model(ObjectReader& body, const ApiContext& context) {
  const std::string model = body.string("model", kMaxName);
  const auto& names = context.models;
  if (!body.has("model") || std::find(names.begin(), names.end(), model) != names.end()) return;
  throw model_not_found(model, names);
}

void read_generation(ObjectReader& body, const ApiContext& context, GenerationRequest& request) {
  request.options = context.defaults;
  request.n = body.integer("n", 1, kMaxChoices, 1);
  read_sampling(body, context, request.options.sampling);
  read_end(body, context, request);
  read_form(body, request);
  read_drafting(body, request.options);
  read_stream(body, request);
  // Nobody can go before others, only behind them.
  request.priority = static_cast<int>(body.integer("priority", 0, 1000, 0));
  read_without_effect(body);
  refuse_foreign(body);
}

void check_end(const GenerateOptions& options) {
  if (options.min_new_tokens == 0) return;
  if (options.max_new_tokens >= 0 && options.min_new_tokens > options.max_new_tokens) {
    throw bad_request(
        fmt::format("min_tokens: expected at most max_tokens, which is {} here, found {}.",
                    options.max_new_tokens, options.min_new_tokens),
        "min_tokens", "invalid_value");
  }
  if (!options.grammar.empty() || !options.json_schema.empty()) {
    throw bad_request("min_tokens: the form of the answer alone says where it may end.",
                      "min_tokens", "invalid_value");
  }
}

int64_t read_max_tokens(ObjectReader& body, const char* other_name, int64_t least) {
  const int64_t tokens = body.integer("max_tokens", least, kMaxInt, -1);
  if (!other_name) return tokens;
  const int64_t other = body.integer(other_name, least, kMaxInt, -1);
  if (tokens >= 0 && other >= 0 && tokens != other) {
    throw bad_request(fmt::format("max_tokens and {} mean the same and differ.", other_name),
                      "max_tokens", "invalid_value");
  }
  return std::max(tokens, other);
}

std::vector<int32_t> read_token_ids(const Json& ids, const std::string& path,
                                    const ApiContext& context) {
  std::vector<int32_t> result;
  result.reserve(ids.size());
  for (const Json& id : ids) {
    const std::optional<int64_t> number = whole_number(id);
    if (!number || *number < 0 || *number >= context.vocab_size) {
      throw bad_request(fmt::format("{}[{}]: expected a token id from 0 to {}, found {}.", path,
                                    result.size(), context.vocab_size - 1, shown(id)),
                        path, "invalid_value");
    }
    result.push_back(static_cast<int32_t>(*number));
  }
  return result;
}

}  // namespace orthrus
