#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orthrus/language_model.h"

namespace orthrus {

inline constexpr int64_t kDefaultContext = 4096;

/// Flags that say which model to load and how.
struct ModelFlags {
  std::string model;
  std::string adapter;
  std::string view;  ///< "dual", "ar" or "": dual where the model has a diffusion view
  std::string weights = "auto";
  std::string draft_weights = "auto";
  int64_t draft_vocab = 0;
  std::string kv_type;  ///< of keys and values: "bf16", "f32", "q8" or "": what suits the weights
  std::string key_type, value_type;  ///< of one of them, or "": as kv_type says
  std::string packed_cache;  ///< of --cache-packed: "" or "false": off; "true": the usual folder
  int threads = 0;
  std::optional<int64_t> context;  ///< unset: kDefaultContext
  int64_t ubatch = 512;
};

/// Flags that say what follows a prompt. Unset ones keep the model's own defaults.
struct GenerationFlags {
  int64_t max_tokens = -1;
  std::optional<double> temperature, top_p, min_p, repeat_penalty;
  std::optional<int64_t> top_k, repeat_last_n, seed;
  double presence_penalty = 0, frequency_penalty = 0;
  std::vector<std::string> logit_bias;  ///< TOKEN_ID+BIAS or TOKEN_ID-BIAS
  std::vector<std::string> stop;
  bool ignore_eos = false;
  std::string draft_max = "auto";
  std::string consensus = "exact";
  double consensus_threshold = 0.01;
  bool consensus_stats = false;
  std::string grammar, grammar_file;          ///< GBNF
  std::string json_schema, json_schema_file;  ///< of the answer
};

/// Flags that say where a prompt comes from and whether the chat template goes around it.
struct PromptFlags {
  std::vector<std::string> words;  ///< the prompt as plain arguments
  std::optional<std::string> prompt;
  std::string file;
  std::string system;
  std::string template_kwargs;  ///< a JSON object
  bool raw = false;
};

void add_model_flag(CLI::App& app, std::string& model);
void add_view_flags(CLI::App& app, ModelFlags& flags);  ///< --adapter and --view
void add_packed_cache_flag(CLI::App& app, ModelFlags& flags);
void add_threads_flag(CLI::App& app, int& threads);
void add_draft_flags(CLI::App& app, ModelFlags& flags);  ///< --draft-weights, --draft-vocab
void add_kv_type_flag(CLI::App& app, std::string& type);
/// All of ModelFlags.
void add_model_flags(CLI::App& app, ModelFlags& flags);
void add_generation_flags(CLI::App& app, GenerationFlags& flags);
CLI::Option* add_draft_max_flag(CLI::App& app, std::string& draft_max);
CLI::Option* add_consensus_flag(CLI::App& app, std::string& consensus);
void add_text_flags(CLI::App& app, PromptFlags& flags);
CLI::Option* add_template_kwargs_flag(CLI::App& app, std::string& kwargs);
void add_template_flags(CLI::App& app, PromptFlags& flags);

/// What GenerateOptions::draft_max is for a checked value of --draft-max.
int64_t parse_draft_max(const std::string& text);

/// For numbers from `least` to `most`; refuses NaN.
CLI::Validator number_in(double least, double most);

/// For the type of cached keys or values.
CLI::Validator check_kv_type();

/// Names of enum values, as flags and reports have them.
WeightFormat weight_format(const std::string& name);
DraftWeights draft_weights(const std::string& name);
std::optional<KvType> kv_type(const std::string& name);
const char* kv_type_name(KvType type);
Consensus consensus_of(const std::string& name);
const char* consensus_name(Consensus consensus);
const char* finish_reason_name(FinishReason reason);

/// Types of cached keys and values as the flags have them; unset: what suits the weights.
std::optional<KvType> key_type(const ModelFlags& flags);
std::optional<KvType> value_type(const ModelFlags& flags);

/// Error(kUsage) where no model was named.
void require_model(const std::string& model);

/// Checks that the flags fit together. Warns where `--adapter copy` replaces trained weights.
LoadOptions load_options(const ModelFlags& flags, int64_t batch = 1);

/// A notice where `-c` asks for more than the model's limit.
void note_context(const ModelFlags& flags, int64_t limit);

/// Loads the model, with progress on a terminal. Error(kUsage) for `--view dual` where it has no
/// diffusion view.
LanguageModel load_language_model(const ModelFlags& flags, int64_t batch = 1);

/// The model's defaults with the flags over them. Draws a seed where none was given and the
/// temperature is above 0.
GenerateOptions generate_options(const GenerationFlags& flags, const ModelFlags& model_flags,
                                 const LanguageModel& model);
/// The same over these defaults; `block_size` is 0 without a diffusion view.
GenerateOptions generate_options(const GenerationFlags& flags, const ModelFlags& model_flags,
                                 const SamplingOptions& defaults, int64_t block_size);

/// The user's text: plain arguments, -p, or -f (one newline at its end is dropped unless
/// `keep_newline`). Error(kUsage) where there is none or more than one.
std::string read_text(const PromptFlags& flags, bool keep_newline = false);

/// All of a file, or of stdin for "-", of at most 256 MiB.
std::string read_all(const std::string& file);

}  // namespace orthrus
