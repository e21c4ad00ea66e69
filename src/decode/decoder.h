#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/block_table.h"
#include "decode/cost_model.h"
#include "model/forward.h"
#include "orthrus/options.h"

namespace orthrus {

/// Takes tokens as they are decided, in order. Returning false stops the generation after this token:
/// it is the last one that counts.
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

/// One generation as a state machine over passes: plan() says which span it wants to run next, consume()
/// takes that span's logits. Prefill in chunks, then cycles of draft, verify, consensus, commit
/// (paper, section 3; REFERENCE.md 1 in docs/architecture.md's words). Several decoders share passes
/// in DecodeLoop. Knows token ids, never text.
class Decoder {
 public:
  struct Setup {
    const Model* model;
    BlockTable* table;                 ///< its committed prefix must equal the prompt's first tokens
    std::span<const int32_t> prompt;   ///< whole prompt, not empty
    const GenerateOptions* options;
    std::span<const int32_t> eos_token_ids;
    int64_t max_seq_len;               ///< prompt and answer together never exceed it
    int64_t prefill_chunk;             ///< most prompt rows a pass
    CostModel* cost;                   ///< for the automatic draft length
    TokenSink* sink;
    Drafter* drafter = nullptr;
  };
  explicit Decoder(const Setup& setup);
  ~Decoder();

  bool finished() const;
  /// The next span, of at most `max_rows` rows; valid until consume(). `companions`: sequences that share the
  /// pass, this one included (the automatic length spends rows where they pay).
  Span plan(int64_t max_rows, int64_t companions);
  /// logits: [logits_end - logits_begin, vocab] of the planned span.
  void consume(std::span<const float> logits);
  /// Ends the generation now with kCancelled.
  void cancel();
  /// Counters and token_ids; text, times and kv_bytes are filled in by the owners of those.
  const GenerateResult& result() const;
  /// Prompt and answer so far: what the table's committed prefix was computed from.
  std::span<const int32_t> tokens() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Runs decoders together until all are finished: each pass carries the next span of every unfinished one.
/// Adds prefill and decode seconds to nothing but its own counters; stops early where `stop` asks.
class DecodeLoop {
 public:
  DecodeLoop(Forward& forward, CostModel& cost) : forward_(forward), cost_(cost) {}
  struct Times {
    double prefill_seconds = 0;  ///< passes in which this decoder was in its prefill
    double decode_seconds = 0;
  };
  /// One pass over all unfinished decoders; false where there was none left.
  bool step(std::span<Decoder* const> decoders, std::span<Times> times);

 private:
  Forward& forward_;
  CostModel& cost_;
  std::vector<Span> spans_;
};

}  // namespace orthrus
