#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "orthrus/error.h"
#include "orthrus/options.h"

namespace orthrus {

/// Receives an answer while it is made. Called from the thread that called generate().
class Streamer {
 public:
  virtual ~Streamer() = default;
  /// The prompt's tokens and text, before anything else, unless skip_prompt().
  virtual void on_prompt(std::span<const int32_t> token_ids, std::string_view text) {}
  /// New text, valid UTF-8, possibly of several tokens. Never empty.
  virtual void on_text(std::string_view text) = 0;
  /// After the last text, also of a cancelled answer.
  virtual void on_end() {}
  virtual bool skip_prompt() const { return true; }
};

/// Writes text to a stream as it comes (the article's TextStreamer).
class TextStreamer : public Streamer {
 public:
  explicit TextStreamer(std::FILE* out, bool skip_prompt = true)
      : out_(out), skip_prompt_(skip_prompt) {}
  void on_prompt(std::span<const int32_t> token_ids, std::string_view text) override;
  void on_text(std::string_view text) override;
  bool skip_prompt() const override { return skip_prompt_; }

 private:
  std::FILE* out_;
  bool skip_prompt_;
};

/// The KV cache of a conversation: keeps what generate() computed, so that the next call's prompt
/// reuses the longest common prefix. Belongs to the model that made it (and keeps its memory
/// alive); one generation at a time.
class Session {
 public:
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Forgets everything; the memory stays with the session.
  void reset();

 private:
  friend class LanguageModel;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// What a loaded model really runs with.
struct ModelInfo {
  std::string path;  ///< directory or file
  std::string
      diffusion_source;  ///< "checkpoint", "copy", the adapter's path, or "": no diffusion view
  std::string weights;   ///< "f32", "bf16", "q8", "q4", or the type the file has ("q4_1", "q4_k")
  std::string draft_weights;  ///< what drafting reads: "same", "q8", "q4"; "" without a view
  int64_t draft_vocab = 0;    ///< tokens that may be drafted: those below this id
  std::string isa;            ///< as ORTHRUS_ISA names it: "avx512_bf16", "avx2", "portable"
  int threads = 0;
  KvType key_type = KvType::kBF16;
  KvType value_type = KvType::kBF16;
  int64_t block_size = 0;   ///< rows of a full draft block, the anchor included; 0 without a view
  size_t weight_bytes = 0;  ///< packed, diffusion included
  size_t diffusion_bytes = 0;
};

/// One of several generations that share passes.
struct BatchRequest {
  std::vector<int32_t> input_ids;
  GenerateOptions options;
};

/// A loaded model with its tokenizer and template. One generation at a time (not thread-safe),
/// except that a std::stop_token cancels from any thread. Errors throw orthrus::Error.
class LanguageModel {
 public:
  /// Opens, checks and packs a model. Error(kUsage) for options out of range, Error(kInput) for
  /// files that cannot be used, in one line that names file, place, expected and found.
  static LanguageModel load(const LoadOptions& options);
  ~LanguageModel();
  LanguageModel(LanguageModel&&) noexcept;
  LanguageModel& operator=(LanguageModel&&) noexcept;

  /// Token ids; specials written in the text become their ids. None is added, unless
  /// add_special_tokens: then the tokens that the tokenizer's file puts before a text (Llama 3: the
  /// beginning of the text) come first where the text does not begin with them. A rendered chat
  /// template has its own.
  std::vector<int32_t> encode(std::string_view text, bool add_special_tokens = false) const;
  /// The bytes of the tokens. Ids of the model's vocabulary without a token (padding) give nothing;
  /// ids outside the vocabulary are an Error(kInput).
  std::string decode(std::span<const int32_t> token_ids, bool skip_special_tokens = false) const;

  /// Whether the model brings a chat template.
  bool has_chat_template() const;
  /// The chat template over a JSON object {"messages": [...], "tools": [...],
  /// "add_generation_prompt": true, "kwargs": {...}}, or over the array of messages alone;
  /// add_generation_prompt is true where absent.
  std::string apply_chat_template(std::string_view json) const;

  /// Generates after `input_ids`. Byte for byte the plain AR text in Consensus::kExact, whatever
  /// use_diffusion_mode, draft_max and the machine's threads. An empty prompt starts from the
  /// model's bos (else eos) token. Error(kInput) where the prompt does not fit max_seq_len.
  GenerateResult generate(std::span<const int32_t> input_ids, const GenerateOptions& options,
                          Streamer* streamer = nullptr, Session* session = nullptr,
                          std::stop_token stop = {});

  /// Generates for all requests, LoadOptions::batch at a time in shared passes; a finished one
  /// makes room for the next. Each answer is byte for byte the one generate() gives. done(index,
  /// result) is called once a request, in the order they finish. A request that cannot run (its
  /// prompt is too long, say) gets failed(index, message) instead.
  void generate_batch(std::span<const BatchRequest> requests,
                      const std::function<void(size_t, GenerateResult)>& done,
                      const std::function<void(size_t, const std::string&)>& failed,
                      std::stop_token stop = {});

  Session new_session() const;
  ModelInfo info() const;
  /// Whether diffusion weights were loaded: without, generate() is plain AR.
  bool has_diffusion_view() const;
  /// Tokens that prompt and answer may have together: LoadOptions::max_seq_len or the model's
  /// limit, the smaller.
  int64_t max_seq_len() const;
  /// Sampling defaults of the model's generation_config.json (greedy where it has none).
  SamplingOptions default_sampling() const;

 private:
  struct Impl;
  explicit LanguageModel(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;  // shared with its sessions
};

}  // namespace orthrus
