#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/log.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "formats/checkpoint.h"
#include "formats/json.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr double kNoLimit = 9e15;  // integers up to here are exact in double

// "15043+1.5", "15043-inf" (a ban); nullopt for anything else.
std::optional<std::pair<int32_t, double>> parse_logit_bias(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  long token = std::strtol(text.c_str(), &end, 10);
  bool good = end != text.c_str() && errno == 0 && token >= 0 && token <= INT32_MAX &&
              (*end == '+' || *end == '-') && std::isdigit(static_cast<unsigned char>(text[0]));
  if (good) {
    const char* number = end;
    double bias = std::strtod(number, &end);
    good = end != number && *end == '\0' &&
           (bias == -INFINITY || std::abs(bias) <= std::numeric_limits<float>::max());
    if (good) return std::pair(static_cast<int32_t>(token), bias);
  }
  return std::nullopt;
}

std::string check_logit_bias(const std::string& text) {
  if (parse_logit_bias(text)) return {};
  return fmt::format("expected TOKEN_ID+BIAS or TOKEN_ID-BIAS, found \"{}\"", printable(text));
}

std::string check_json_object(const std::string& text) {
  try {
    if (parse_json(text, "its text").is_object()) return {};
  } catch (const Error& error) {
    return fmt::format("expected a JSON object: {}", error.what());
  }
  return fmt::format("expected a JSON object, found \"{}\"", printable(text));
}

CLI::Validator checked_by(std::string (*check)(const std::string&)) {
  return CLI::Validator([check](std::string& text) { return check(text); }, "");
}

std::string check_draft_max(const std::string& text) {
  bool digits = !text.empty() && text.size() <= 6;
  for (char c : text) digits = digits && c >= '0' && c <= '9';
  return digits || text == "auto" || text == "-1"
             ? std::string()
             : fmt::format("expected auto or a number of drafts, found \"{}\"", printable(text));
}

uint64_t choose_seed(const GenerationFlags& flags, double temperature) {
  if (flags.seed && *flags.seed >= 0) return static_cast<uint64_t>(*flags.seed);
  return temperature > 0 ? std::random_device()() : 0;
}

void add_sampling_flags(CLI::App& app, GenerationFlags& flags) {
  const char* group = "Sampling";
  app.add_option("--temp,--temperature", flags.temperature,
                 "temperature, 0: greedy (default: the model's own); applied after the penalties "
                 "and before top-k, top-p, min-p (llama.cpp applies it last)")
      ->check(number_in(0, 1e6))
      ->group(group);
  app.add_option("--top-k", flags.top_k, "keep the k most likely tokens, 0: all")
      ->check(number_in(0, INT32_MAX))
      ->group(group);
  app.add_option("--top-p", flags.top_p, "keep the most likely tokens of that joint probability")
      ->check(number_in(0, 1))
      ->group(group);
  app.add_option("--min-p", flags.min_p,
                 "keep tokens with that share of the best one's probability")
      ->check(number_in(0, 1))
      ->group(group);
  app.add_option("-s,--seed", flags.seed, "seed of the noise (default, or -1: drawn and shown)")
      ->check(number_in(-1, kNoLimit))
      ->group(group);
  app.add_option("--repeat-penalty", flags.repeat_penalty, "1: off")
      ->check(number_in(1e-3, 1e3))
      ->group(group);
  app.add_option("--repeat-last-n", flags.repeat_last_n,
                 "tokens that penalties look back at, -1: all (default 64)")
      ->check(number_in(-1, INT32_MAX))
      ->group(group);
  app.add_option("--presence-penalty", flags.presence_penalty, "0: off")
      ->check(number_in(-1e3, 1e3))
      ->group(group);
  app.add_option("--frequency-penalty", flags.frequency_penalty, "0: off")
      ->check(number_in(-1e3, 1e3))
      ->group(group);
  app.add_option("--logit-bias", flags.logit_bias,
                 "TOKEN_ID(+/-)BIAS, e.g. 15043+1 or 15043-inf; repeatable")
      ->check(checked_by(check_logit_bias))
      ->allow_extra_args(false)
      ->group(group);
}

// docs/grammar.md
void add_form_flags(CLI::App& app, GenerationFlags& flags) {
  const char* group = "Form of the answer";
  std::vector<CLI::Option*> options = {
      app.add_option("--grammar", flags.grammar, "a grammar in GBNF"),
      app.add_option("--grammar-file", flags.grammar_file, "the same from a file"),
      app.add_option("-j,--json-schema", flags.json_schema, "a JSON schema, {}: any JSON"),
      app.add_option("--json-schema-file", flags.json_schema_file, "the same from a file")};
  for (CLI::Option* option : options) {
    option->group(group);
    for (CLI::Option* other : options) {
      if (other != option) option->excludes(other);
    }
  }
}

// The folder that a value of --cache-packed stands for; "" for none.
std::string packed_cache_folder(const std::string& value) {
  const std::string word = CLI::detail::to_lower(value);
  const auto is_one_of = [&](std::initializer_list<const char*> words) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  if (is_one_of({"", "false", "off", "no", "0"})) return {};
  if (is_one_of({"true", "on", "yes", "1"})) return cached_model_directory("packed");
  std::error_code error;
  if (std::filesystem::exists(value, error) && !std::filesystem::is_directory(value, error)) {
    fail_usage("--cache-packed={}: expected a folder, on or off, found a file", printable(value));
  }
  return value;
}

// Drafts of untrained weights are poor: nobody wants them in place of trained ones unawares.
void warn_of_trained_weights(const std::string& name) {
  const ResolvedModel model = resolve_model(name);
  if (model.adapter.empty() && !open_checkpoint(model.path).config.is_orthrus) return;
  spdlog::warn("--adapter copy: untrained weights take the place of the trained ones that {} has",
               printable(name));
}

// Flags that say how to draft are for the dual view alone.
void warn_of_unused_draft_flags(const GenerationFlags& flags, const ModelFlags& model_flags) {
  std::vector<std::string> unused;
  if (flags.draft_max != "auto" && parse_draft_max(flags.draft_max) > 0) {
    unused.push_back("--draft-max " + flags.draft_max);
  }
  if (flags.consensus != "exact") unused.push_back("--consensus " + flags.consensus);
  if (flags.consensus_stats) unused.emplace_back("--consensus-stats");
  if (model_flags.draft_weights == "q8" || model_flags.draft_weights == "q4") {
    unused.push_back("--draft-weights " + model_flags.draft_weights);
  }
  if (model_flags.draft_vocab > 0) {
    unused.push_back(fmt::format("--draft-vocab {}", model_flags.draft_vocab));
  }
  if (unused.empty()) return;
  spdlog::warn("without effect {}: {}",
               model_flags.view == "ar" ? "with --view ar" : "without a diffusion view",
               fmt::join(unused, ", "));
}

}  // namespace

CLI::Validator number_in(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        char* end = nullptr;
        double value = std::strtod(text.c_str(), &end);
        if (end != text.c_str() && *end == '\0' && value >= least && value <= most) return {};
        return most >= kNoLimit || most == INT32_MAX
                   ? fmt::format("expected a number of at least {}, found \"{}\"", least,
                                 printable(text))
                   : fmt::format("expected a number from {} to {}, found \"{}\"", least, most,
                                 printable(text));
      },
      "");
}

CLI::Validator check_kv_type() {
  return CLI::Validator(
      [](std::string& text) -> std::string {
        if (text == "bf16" || text == "f32" || text == "q8" || text == "q8_0") return {};
        return fmt::format(
            "expected bf16, f32 or q8, found \"{}\" (bf16 takes as many bytes as f16)",
            printable(text));
      },
      "");
}

void add_model_flag(CLI::App& app, std::string& model) {
  app.add_option("-m,--model,--hf-repo", model,
                 "(-hf) a directory, a .gguf file, or the name of a pulled model: OWNER/NAME, "
                 "OWNER/NAME:Q4_K_M")
      ->group("Model");
}

void add_view_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--adapter", flags.adapter,
                 "diffusion weights: a path, or \"copy\" for untrained ones (default: the model's)")
      ->group("Model");
  app.add_option("--view", flags.view, "dual: with the diffusion view; ar: without")
      ->check(CLI::IsMember({"dual", "ar"}))
      ->group("Model");
}

void add_packed_cache_flag(CLI::App& app, ModelFlags& flags) {
  app.add_flag("--cache-packed", flags.packed_cache,
               "keep the packed weights in a file, which later loads read in place of the model's: "
               "in --cache-packed=FOLDER, or in ~/.cache/orthrus/packed; off: not")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast)
      ->group("Model");
}

void add_threads_flag(CLI::App& app, int& threads) {
  app.add_option("-t,--threads", threads, "0: all that this process may use")
      ->check(number_in(0, 1024))
      ->capture_default_str()
      ->group("Model");
}

void add_draft_flags(CLI::App& app, ModelFlags& flags) {
  app.add_option("--draft-vocab", flags.draft_vocab,
                 "draft only tokens below this id, the most frequent ones of a BPE vocabulary, so "
                 "that drafting reads less; 0: all (under --consensus rejection and kl always)")
      ->check(number_in(0, INT32_MAX))
      ->capture_default_str()
      ->group("Model");
  app.add_option("--draft-weights", flags.draft_weights,
                 "runtime format of what drafting alone reads; same: that of the weights; auto: "
                 "the fewest bits that pay")
      ->check(CLI::IsMember({"auto", "same", "q8", "q4"}))
      ->capture_default_str()
      ->group("Model");
}

void add_kv_type_flag(CLI::App& app, std::string& type) {
  app.add_option("--kv-type", type,
                 "type of cached keys and values: bf16, f32, q8 (default: f32 with f32 weights, "
                 "else bf16)")
      ->check(check_kv_type())
      ->group("Model");
}

void add_model_flags(CLI::App& app, ModelFlags& flags) {
  const char* group = "Model";
  add_model_flag(app, flags.model);
  add_view_flags(app, flags);
  app.add_option("--weights", flags.weights, "runtime format; auto keeps the file's precision")
      ->check(CLI::IsMember({"auto", "f32", "bf16", "q8", "q4"}))
      ->capture_default_str()
      ->group(group);
  add_draft_flags(app, flags);
  add_packed_cache_flag(app, flags);
  app.add_option(
         "-c,--ctx-size,--max-seq-len,--max-model-len", flags.context,
         fmt::format("tokens of prompt and answer together, 0: the model's limit (default {})",
                     kDefaultContext))
      ->check(number_in(0, INT32_MAX))
      ->group(group);
  add_threads_flag(app, flags.threads);
  app.add_option("--ubatch-size", flags.ubatch, "(-ub) most prompt tokens a pass")
      ->check(number_in(1, 65536))
      ->capture_default_str()
      ->group(group);
  add_kv_type_flag(app, flags.kv_type);
  app.add_option("--cache-type-k", flags.key_type, "(-ctk) type of cached keys alone")
      ->check(check_kv_type())
      ->group(group);
  app.add_option("--cache-type-v", flags.value_type, "(-ctv) type of cached values alone")
      ->check(check_kv_type())
      ->group(group);
}

CLI::Option* add_draft_max_flag(CLI::App& app, std::string& draft_max) {
  return app
      .add_option("--draft-max", draft_max,
                  "most drafts a cycle: auto (or -1), or a number (0: plain AR)")
      ->check(checked_by(check_draft_max))
      ->capture_default_str();
}

CLI::Option* add_consensus_flag(CLI::App& app, std::string& consensus) {
  return app
      .add_option("--consensus", consensus,
                  "exact: the plain AR text; rejection: the AR distribution; kl: approximate")
      ->check(CLI::IsMember({"exact", "rejection", "kl"}))
      ->capture_default_str();
}

int64_t parse_draft_max(const std::string& text) {
  if (text == "auto") return -1;
  return std::stoll(text);  // the validator has seen to it
}

void add_generation_flags(CLI::App& app, GenerationFlags& flags) {
  const char* group = "Generation";
  app.add_option("-n,--predict,--n-predict,--max-new-tokens", flags.max_tokens,
                 "most tokens of an answer, -1: up to the context's end")
      ->check(number_in(-1, INT32_MAX))
      ->capture_default_str()
      ->group(group);
  app.add_option("--stop", flags.stop, "end the answer before this text; repeatable")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("--ignore-eos", flags.ignore_eos, "go on after the end-of-sequence token")
      ->group(group);
  add_draft_max_flag(app, flags.draft_max)->group(group);
  add_consensus_flag(app, flags.consensus)->group(group);
  app.add_option("--consensus-threshold", flags.consensus_threshold,
                 "nats: kl takes drafts below it; conflicts are counted at it")
      ->check(number_in(0, 1e6))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--consensus-stats", flags.consensus_stats,
               "report KL and conflict rate in every mode")
      ->group(group);
  add_form_flags(app, flags);
  add_sampling_flags(app, flags);
}

void add_text_flags(CLI::App& app, PromptFlags& flags) {
  app.add_option("-p,--prompt", flags.prompt, "the text")->group("Input");
  app.add_option("-f,--file", flags.file, "the text from a file, - for stdin")->group("Input");
  app.add_option("text", flags.words, "the text; behind -- it may start with dashes")
      ->group("Input");
}

CLI::Option* add_template_kwargs_flag(CLI::App& app, std::string& kwargs) {
  return app
      .add_option("--chat-template-kwargs", kwargs,
                  "variables for the chat template, a JSON object")
      ->check(checked_by(check_json_object));
}

void add_template_flags(CLI::App& app, PromptFlags& flags) {
  app.add_option("--system-prompt", flags.system, "(-sys) the system message")->group("Input");
  add_template_kwargs_flag(app, flags.template_kwargs)->group("Input");
}

DraftWeights draft_weights(const std::string& name) {
  if (name == "same") return DraftWeights::kSame;
  if (name == "q8") return DraftWeights::kQ8;
  if (name == "q4") return DraftWeights::kQ4;
  return DraftWeights::kAuto;
}

WeightFormat weight_format(const std::string& name) {
  static const std::map<std::string, WeightFormat> kFormats = {{"auto", WeightFormat::kAuto},
                                                               {"f32", WeightFormat::kF32},
                                                               {"bf16", WeightFormat::kBF16},
                                                               {"q8", WeightFormat::kQ8},
                                                               {"q4", WeightFormat::kQ4}};
  return kFormats.at(name);
}

std::optional<KvType> kv_type(const std::string& name) {
  if (name.empty()) return std::nullopt;
  if (name == "q8" || name == "q8_0") return KvType::kQ8;  // the latter is llama.cpp's name
  return name == "f32" ? KvType::kF32 : KvType::kBF16;
}

const char* kv_type_name(KvType type) {
  if (type == KvType::kQ8) return "q8";
  return type == KvType::kF32 ? "f32" : "bf16";
}

std::optional<KvType> key_type(const ModelFlags& flags) {
  return kv_type(flags.key_type.empty() ? flags.kv_type : flags.key_type);
}

std::optional<KvType> value_type(const ModelFlags& flags) {
  return kv_type(flags.value_type.empty() ? flags.kv_type : flags.value_type);
}

Consensus consensus_of(const std::string& name) {
  if (name == "rejection") return Consensus::kRejection;
  return name == "kl" ? Consensus::kKl : Consensus::kExact;
}

const char* consensus_name(Consensus consensus) {
  if (consensus == Consensus::kRejection) return "rejection";
  return consensus == Consensus::kKl ? "kl" : "exact";
}

const char* finish_reason_name(FinishReason reason) {
  if (reason == FinishReason::kStop) return "stop";
  return reason == FinishReason::kLength ? "length" : "cancelled";
}

void require_model(const std::string& model) {
  if (model.empty()) fail_usage("which model? Name one with -m");
}

LoadOptions load_options(const ModelFlags& flags, int64_t batch) {
  require_model(flags.model);
  if (flags.view == "ar" && !flags.adapter.empty()) {
    fail_usage("--adapter has no use with --view ar");
  }
  if (flags.adapter == "copy") warn_of_trained_weights(flags.model);
  LoadOptions options;
  options.model = flags.model;
  options.adapter = flags.adapter;
  options.diffusion = flags.view != "ar";
  options.weights = weight_format(flags.weights);
  options.draft_weights = draft_weights(flags.draft_weights);
  options.draft_vocab = flags.draft_vocab;
  options.key_type = key_type(flags);
  options.value_type = value_type(flags);
  options.packed_cache = packed_cache_folder(flags.packed_cache);
  options.threads = flags.threads;
  options.max_seq_len = flags.context.value_or(kDefaultContext);
  options.ubatch = flags.ubatch;
  options.batch = batch;
  return options;
}

void note_context(const ModelFlags& flags, int64_t limit) {
  if (flags.context.value_or(0) > limit) {
    spdlog::info("-c {}: the model's limit of {} tokens holds", *flags.context, limit);
  }
}

LanguageModel load_language_model(const ModelFlags& flags, int64_t batch) {
  LoadOptions options = load_options(flags, batch);
  ProgressLine progress("loading " + flags.model);
  options.progress = [&progress](double share) { progress.update(share); };
  LanguageModel model = LanguageModel::load(options);
  if (flags.view == "dual" && !model.has_diffusion_view()) {
    fail_usage("--view dual: {} has no diffusion view, and no --adapter names one", flags.model);
  }
  note_context(flags, model.max_seq_len());
  return model;
}

GenerateOptions generate_options(const GenerationFlags& flags, const ModelFlags& model_flags,
                                 const LanguageModel& model) {
  return generate_options(flags, model_flags, model.default_sampling(), model.info().block_size);
}

GenerateOptions generate_options(const GenerationFlags& flags, const ModelFlags& model_flags,
                                 const SamplingOptions& defaults, int64_t block_size) {
  GenerateOptions options;
  options.max_new_tokens = flags.max_tokens;
  options.use_diffusion_mode = model_flags.view != "ar" && block_size > 0;
  options.draft_max = parse_draft_max(flags.draft_max);
  if (!options.use_diffusion_mode) warn_of_unused_draft_flags(flags, model_flags);
  const int64_t most_drafts = block_size - 1;
  if (options.use_diffusion_mode && options.draft_max > most_drafts) {
    spdlog::info("--draft-max {}: the model drafts at most {} tokens a cycle", options.draft_max,
                 most_drafts);
  }
  options.consensus = consensus_of(flags.consensus);
  options.consensus_threshold = flags.consensus_threshold;
  options.consensus_stats = flags.consensus_stats;
  options.ignore_eos = flags.ignore_eos;
  options.stop = flags.stop;
  options.grammar = flags.grammar_file.empty() ? flags.grammar : read_all(flags.grammar_file);
  options.json_schema =
      flags.json_schema_file.empty() ? flags.json_schema : read_all(flags.json_schema_file);
  SamplingOptions& sampling = options.sampling;
  sampling = defaults;
  sampling.temperature = flags.temperature.value_or(sampling.temperature);
  sampling.top_k = flags.top_k.value_or(sampling.top_k);
  sampling.top_p = flags.top_p.value_or(sampling.top_p);
  sampling.min_p = flags.min_p.value_or(sampling.min_p);
  sampling.repeat_penalty = flags.repeat_penalty.value_or(sampling.repeat_penalty);
  sampling.repeat_last_n = flags.repeat_last_n.value_or(sampling.repeat_last_n);
  sampling.presence_penalty = flags.presence_penalty;
  sampling.frequency_penalty = flags.frequency_penalty;
  for (const std::string& text : flags.logit_bias) {
    sampling.logit_bias.push_back(parse_logit_bias(text).value());
  }
  sampling.seed = choose_seed(flags, sampling.temperature);
  return options;
}

}  // namespace orthrus
