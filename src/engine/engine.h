#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "cache/prefix_index.h"
#include "decode/decoder.h"
#include "engine/answer.h"
#include "engine/batch_controller.h"
#include "engine/fair_order.h"
#include "model/forward.h"
#include "orthrus/language_model.h"
#include "orthrus/options.h"

namespace orthrus {

/// Whether prompts share passes with answers, or have passes of their own (the article).
enum class PrefillMode : uint8_t { kMixed, kSeparate };

struct EngineOptions {
  int64_t prefill_batch_size = 16;  ///< prompts that are read at once
  int64_t decode_batch_size = 8;    ///< answers that are written at once, at most
  PrefillMode prefill_mode = PrefillMode::kMixed;
  /// The batch of answers begins with 4 and follows the memory; false: decode_batch_size always.
  bool dynamic_batch = true;
  double memory_utilization_target = 0.75;
  int64_t dynamic_adjust_interval_ms = 500;
  /// Time that prompts may add to a step, as a share of the time of the answers in it.
  double prefill_share = 0.8;
};

/// One answer that someone wants.
struct EngineRequest {
  std::vector<int32_t> prompt;  ///< empty: the model's bos (else eos) token
  GenerateOptions options;
  std::string client;  ///< whose turn it takes: API key, else address
  int priority = 0;    ///< smaller first
};

/// Hears of one request; called by the thread that runs step(), which waits for it. After on_done
/// or on_failed nothing more comes.
class EngineListener : public Streamer {
 public:
  void on_text(std::string_view /*text*/) override {}
  /// After each step that decided tokens, but for the last one; their text came before.
  virtual void on_step(const GenerateResult& /*so_far*/) {}
  virtual void on_done(GenerateResult result) = 0;
  virtual void on_failed(const Error& error) = 0;
};

/// What the engine is doing.
struct EngineStats {
  int64_t waiting = 0;     ///< no keys and values yet, or none any more
  int64_t prefilling = 0;  ///< reading their prompts
  int64_t decoding = 0;    ///< writing, or waiting for a place in the batch
  int64_t batch = 0;       ///< answers that may be written at once now
  int64_t blocks_in_use = 0;
  int64_t blocks_idle = 0;  ///< kept for prompts that begin alike
  int64_t blocks = 0;       ///< of the budget
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t prefix_hits = 0;  ///< requests that found a part of their prompt
  int64_t prefix_hit_tokens = 0;
};

/// Serves many requests by passes that they share: continuous batching. A request waits, reads its
/// prompt in chunks, and writes its answer; which ones take part in a step is decided by
/// fair_order, by the batch sizes and by the memory. Where blocks run out, the last in order gives
/// its own back and computes them again later. Whatever happens, each answer is the one that its
/// request has alone (Consensus::kExact; the other rules for their fixed number of drafts).
///
/// submit(), cancel() and stats() from any thread; step() and run() from one.
class Engine {
 public:
  /// What the engine works with; all of it must outlive the engine. The pool is the KV budget. The
  /// forward must have room for decode_batch_size full draft blocks.
  struct Parts {
    AnswerParts answers;
    Forward& forward;
    BlockPool& pool;
  };
  Engine(const Parts& parts, const EngineOptions& options);
  ~Engine();

  /// A request and who hears of it; the listener must live until it has heard the end.
  struct Submission {
    EngineRequest request;
    EngineListener* listener;
  };
  /// Queues requests; their numbers. Error as LanguageModel::generate has them for prompts and
  /// options that cannot be served: then none is queued.
  std::vector<uint64_t> submit(std::vector<Submission> submissions);
  uint64_t submit(EngineRequest request, EngineListener& listener);
  /// Ends a request before the next step, with FinishReason::kCancelled. Unknown numbers (it may
  /// just have ended) are fine.
  void cancel(uint64_t id);

  /// One pass: schedule, run, postprocess. False where no request is there.
  bool step();
  /// Steps until `stop`, and waits for requests in between. Those that are there at the end
  /// are cancelled, and later ones are refused until it runs again.
  void run(const std::stop_token& stop);

  EngineStats stats() const;

 private:
  struct Sequence;
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  void take_news();
  void schedule();
  bool first_prompt_is_new() const;
  void run_pass();
  void postprocess();

  void order();
  void observe_memory();
  bool is_being_read(const Sequence& sequence) const;
  bool may_begin(const Sequence& sequence, int64_t rank) const;
  bool begin(Sequence& sequence);
  bool try_begin(Sequence& sequence);
  void tell(Sequence& sequence, const GenerateResult& so_far);
  bool make_room(const Sequence& sequence, int64_t blocks);
  void preempt(Sequence& sequence);
  void give_back(Sequence& sequence);
  void cancel(Sequence& sequence);
  void finish(Sequence& sequence);
  void fail(Sequence& sequence, const Error& error);
  void end(Sequence& sequence);
  bool fail_pass(const Error& error);
  void publish_stats();
  void set_stopped(bool stopped);
  int64_t blocks_in_use() const { return parts_.pool.used_blocks() - index_.idle_blocks(); }

  Parts parts_;
  EngineOptions options_;
  DecodeLoop loop_;
  PrefixIndex index_;
  BatchController controller_;
  Sequences sequences_;          // in the order of service
  std::vector<Sequence*> pass_;  // those that take part in this step
  std::vector<Decoder*> decoders_;
  std::vector<DecodeLoop::Times> times_;
  int64_t demand_ = 0;                // blocks that pass_ may still take from the pool
  PrefillPace::Terms prefill_terms_;  // of this step
  bool in_pass_ = false;              // else pass_ is not complete
  bool order_changed_ = false;
  bool prompts_turn_ = false;  // PrefillMode::kSeparate
  bool had_room_ = true;       // the last step, for all that took part
  EngineStats counts_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable_any news_;
  Sequences submitted_;
  std::vector<uint64_t> cancelled_;
  uint64_t next_id_ = 1;
  bool stopped_ = false;  // run() has ended: nobody would serve
  EngineStats stats_;
};

}  // namespace orthrus
