#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/block_table.h"
#include "decode/cost_model.h"
#include "decode/prefill_pace.h"
#include "decode/token_constraint.h"
#include "kernels/isa.h"
#include "model/forward.h"
#include "orthrus/error.h"
#include "orthrus/options.h"

namespace orthrus {

/// Takes tokens as they are decided, in order. Returning false stops the generation after this
/// token: it is the last one that counts.
class TokenSink {
 public:
  virtual ~TokenSink() = default;
  virtual bool on_token(int32_t token) = 0;
};

/// Proposes drafts in the diffusion view's place: for tests that need every accepted length.
class Drafter {
 public:
  virtual ~Drafter() = default;
  /// Up to `count` drafts for the positions after tokens.size() - 1 (the anchor is tokens.back()).
  virtual std::vector<int32_t> draft(std::span<const int32_t> tokens, int64_t count) = 0;
};

/// Tokens of a prompt that may come from a cache: the last one's row always runs, as it decides
/// what follows, and where the prompt is scored all do.
int64_t reusable_prompt(int64_t prompt_size, const GenerateOptions& options);

/// Tokens that end an answer: the model's own unless they are ignored, and those of the options.
std::vector<int32_t> end_tokens(const GenerateOptions& options, std::span<const int32_t> eos);

/// One generation as a state machine over passes: plan() says which span it wants to run next,
/// consume() takes that span's logits. Prefill in chunks, then cycles of draft, verify, consensus,
/// commit (paper, section 3; docs/architecture.md). Several decoders share passes in DecodeLoop.
/// Knows token ids, never text. Not thread-safe. A warm cycle allocates nothing but KV blocks.
class Decoder {
 public:
  struct Setup {
    const Model* model;
    BlockTable* table;                ///< its committed prefix must equal the prompt's first tokens
    std::span<const int32_t> prompt;  ///< whole prompt, not empty
    const GenerateOptions* options;
    std::span<const int32_t> eos_token_ids;
    int64_t max_seq_len;    ///< prompt and answer together never exceed it
    int64_t prefill_chunk;  ///< most prompt rows a pass
    CostModel* cost;        ///< for the automatic draft length
    TokenSink* sink;        ///< may be null
    Drafter* drafter = nullptr;
    TokenConstraint* constraint = nullptr;
    Isa isa = choose_isa();  ///< for the work on rows of logits
  };
  /// Everything but `table`, `cost`, `sink`, `drafter` and `constraint` is copied or only used
  /// here. Error(kUsage) for options out of range, Error(kInput) for a prompt longer than
  /// max_seq_len or a token outside the vocabulary.
  explicit Decoder(const Setup& setup);
  ~Decoder();
  Decoder(Decoder&&) noexcept;
  Decoder& operator=(Decoder&&) noexcept;

  bool finished() const;
  /// Whether the next pass still belongs to the prompt, or computes what recompute() lost.
  bool in_prefill() const;
  /// In prefill: what the next span may have of it.
  PrefillPace::Prompt next_prompt_rows() const;
  /// Tokens that the table may have reserved at most when the next pass has been consumed. (What it
  /// reserves follows the tokens decided, not the view: a generation takes the same KV blocks with
  /// and without drafts.)
  int64_t capacity_wanted() const;
  /// The next span, of at most `max_rows` >= 1 rows; valid until consume(). `companions`: sequences
  /// that share the pass, this one included (the automatic length spends rows where they pay). With
  /// fewer than block_size rows a block is cut short. Error(kInput) where the KV pool is exhausted,
  /// here and in consume().
  Span plan(int64_t max_rows, int64_t companions);
  /// logits: [logits_end - logits_begin, vocab] of the planned span; empty where it has a reader
  /// (nothing but tokens is wanted, and they are drawn while lm_head computes the rows). Where the
  /// model's AR row is not usable (NaN, +inf, everything banned) the generation ends with error().
  void consume(std::span<const float> logits);
  /// The owner has emptied the table, or replaced it by a prefix of tokens() from the cache: the
  /// coming passes compute the rest again, and the answer goes on as if nothing had happened. A
  /// draft at hand is dropped. Between consume() and plan().
  void recompute();
  /// Seconds spent in the sink since the last call: the owner's time, no cost of the pass.
  double take_sink_seconds();
  /// Ends the generation now with kCancelled.
  void cancel();
  /// Why the generation could not go on, if so: a matter of this request alone.
  const std::optional<Error>& error() const;
  /// Counters and token_ids; text, times and kv_bytes are filled in by the owners of those.
  /// Throws error() where there is one.
  const GenerateResult& result() const;
  /// Prompt and answer so far. The table's committed prefix was computed from its first tokens.
  std::span<const int32_t> tokens() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs decoders together until all are finished: each pass carries the next span of every
/// unfinished one, of those in their prefill as many as there are rows for. Not thread-safe.
class DecodeLoop {
 public:
  DecodeLoop(Forward& forward, CostModel& cost) : forward_(forward), cost_(cost), pace_(cost) {}
  struct Times {
    double prefill_seconds = 0;  ///< passes in which this decoder was in its prefill
    double decode_seconds = 0;
  };
  /// One pass over all unfinished decoders, choosing tokens included; false where there was none
  /// left. times[i] belongs to decoders[i]. Blocks keep their full length if the Forward has room
  /// for block_size rows a decoder. Prompts come in at their pace, or as fast as they can where
  /// nothing is being written: an infinite share.
  bool step(std::span<Decoder* const> decoders, std::span<Times> times,
            const PrefillPace::Terms& prefill = {std::numeric_limits<double>::infinity()});
  const PrefillPace& pace() const { return pace_; }

 private:
  void plan(std::span<Decoder* const> decoders, bool prefill);
  int64_t prefill_rows(std::span<Decoder* const> decoders, const PrefillPace::Terms& terms);
  struct Member {
    size_t index;
    bool prefill;
  };
  Forward& forward_;
  CostModel& cost_;
  int64_t rows_left_ = 0;
  PrefillPace pace_;
  std::vector<Span> spans_;
  std::vector<Member> members_;
  std::vector<PrefillPace::Prompt> prompts_;
};

}  // namespace orthrus
