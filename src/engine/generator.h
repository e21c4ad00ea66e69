#pragma once

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "cache/block_pool.h"
#include "decode/cost_model.h"
#include "decode/decoder.h"
#include "engine/answer.h"
#include "engine/loaded_model.h"
#include "model/forward.h"
#include "orthrus/language_model.h"

namespace orthrus {

/// How large the passes of a Generator get: a chunk of a prompt, or a full draft block of every
/// sequence and a bit of a prompt.
PassLimits pass_limits(const ModelConfig& config, int64_t ubatch, int64_t batch,
                       int64_t max_seq_len);

/// The KV cache of a conversation and the tokens it was computed from.
struct Conversation {
  explicit Conversation(BlockPool& pool) : table(pool) {}
  BlockTable table;
  std::vector<int32_t> tokens;  ///< those of the committed cache
};

/// Runs generations on a loaded model: one, or several in shared passes. Owns the threads, the
/// block pool and the pass. Not thread-safe; stop tokens may be set from any thread.
class Generator {
 public:
  explicit Generator(const LoadOptions& options);

  const LoadedModel& loaded() const { return loaded_; }
  Forward& forward() { return forward_; }
  BlockPool& block_pool() { return block_pool_; }
  CostModel& cost_model() { return cost_; }
  ThreadPool& thread_pool() { return *threads_; }
  int64_t max_seq_len() const { return max_seq_len_; }
  /// LanguageModel::default_sampling()
  SamplingOptions default_sampling() const;
  AnswerParts answer_parts() {
    return {loaded_, cost_, grammars_, max_seq_len_, ubatch_, drafter_};
  }

  GenerateResult generate(std::span<const int32_t> input_ids, const GenerateOptions& options,
                          Streamer* streamer, Conversation* conversation, std::stop_token stop);

  void generate_batch(std::span<const BatchRequest> requests,
                      const std::function<void(size_t, GenerateResult)>& done,
                      const std::function<void(size_t, const std::string&)>& failed,
                      std::stop_token stop);

  /// For tests: drafts come from here instead of the diffusion view.
  void set_drafter(Drafter* drafter) { drafter_ = drafter; }

 private:
  std::unique_ptr<ThreadPool> threads_;
  ComputeContext context_;
  MachineRates rates_;  // measured, where nobody has yet, before the weights take memory
  LoadedModel loaded_;
  int64_t max_seq_len_;
  int64_t batch_;
  int64_t ubatch_;
  KvLayout layout_;
  BlockPool block_pool_;
  Forward forward_;
  CostModel cost_;
  Grammars grammars_;
  DecodeLoop loop_;
  Drafter* drafter_ = nullptr;
};

}  // namespace orthrus
