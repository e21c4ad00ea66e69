#include "engine/generator.h"

#include <algorithm>
#include <limits>
#include <list>

#include "base/available_memory.h"
#include "base/error.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/kv_budget.h"
#include "engine/machine_cache.h"

namespace orthrus {
namespace {

constexpr int kMaxThreads = 1024;
constexpr int64_t kMaxBatch = 1024;
constexpr int64_t kMaxUbatch = 65536;

std::unique_ptr<ThreadPool> make_threads(const LoadOptions& options) {
  const auto check = [](const char* name, int64_t value, int64_t low, int64_t high) {
    if (value < low || value > high) {
      fail_usage("{} is {}, expected {} to {}", name, value, low, high);
    }
  };
  check("threads", options.threads, 0, kMaxThreads);
  check("ubatch", options.ubatch, 1, kMaxUbatch);
  check("batch", options.batch, 1, kMaxBatch);
  check("max_seq_len", options.max_seq_len, 0, int64_t{1} << 31);
  if (options.threads > usable_threads()) {
    spdlog::warn("{} threads on {} usable cores: fewer are faster", options.threads,
                 usable_threads());
  }
  return std::make_unique<ThreadPool>(options.threads);
}

/// max_seq_len as asked for, but never beyond what the model's positions were trained for.
int64_t context_limit(const LoadOptions& options, const ModelConfig& config) {
  const int64_t limit = config.max_position_embeddings;
  if (options.max_seq_len == 0) return limit;
  return std::min(options.max_seq_len, limit);
}

KvLayout layout_for(const LoadOptions& options, const ModelConfig& config) {
  const KvType fallback = usual_kv_type(options.weights);
  return kv_layout(config, options.key_type.value_or(fallback),
                   options.value_type.value_or(fallback));
}

int64_t pool_blocks(const LoadOptions& options, const Model& model, const KvLayout& layout,
                    int64_t max_seq_len) {
  if (options.kv_cache_memory_budget_gb == 0) return options.batch * blocks_for(max_seq_len);
  int64_t available = available_memory();
  if (available > 0 && model.mapped) {
    available = std::max<int64_t>(1, available - static_cast<int64_t>(model.weight_bytes()));
  }
  return kv_budget_blocks(options.kv_cache_memory_budget_gb, available, layout, max_seq_len);
}

/// Rows of prompts that fit beside full draft blocks of all sequences.
constexpr int64_t kPromptRows = 4;

}  // namespace

PassLimits pass_limits(const ModelConfig& config, int64_t ubatch, int64_t batch,
                       int64_t max_seq_len) {
  const int64_t blocks = batch * std::max<int64_t>(1, config.block_size);
  return {.rows = std::max(std::min(ubatch, max_seq_len), blocks + (batch > 1 ? kPromptRows : 0)),
          .logit_rows = blocks,
          .draft_spans = config.block_size > 0 ? batch : 0,
          .tokens = max_seq_len};
}

Generator::Generator(const LoadOptions& options)
    : threads_(make_threads(options)),
      context_{choose_isa(), *threads_},
      rates_(machine_rates(context_)),
      loaded_(open_model(options, *threads_)),
      max_seq_len_(context_limit(options, loaded_.model.config)),
      batch_(options.batch),
      ubatch_(std::min(options.ubatch, max_seq_len_)),
      layout_(layout_for(options, loaded_.model.config)),
      block_pool_(layout_, pool_blocks(options, loaded_.model, layout_, max_seq_len_)),
      forward_(loaded_.model, block_pool_.layout(), context_,
               pass_limits(loaded_.model.config, ubatch_, batch_, max_seq_len_).rows, max_seq_len_),
      cost_(loaded_.model, block_pool_.layout(), rates_),
      grammars_(loaded_),
      loop_(forward_, cost_) {}

SamplingOptions Generator::default_sampling() const {
  const ModelConfig::SamplingDefaults& d = loaded_.model.config.sampling;
  SamplingOptions options;
  if (!d.do_sample) return options;
  options.temperature = d.temperature.value_or(1.0);
  options.top_k = d.top_k.value_or(options.top_k);
  options.top_p = d.top_p.value_or(options.top_p);
  options.min_p = d.min_p.value_or(options.min_p);
  options.repeat_penalty = d.repetition_penalty.value_or(options.repeat_penalty);
  return options;
}

GenerateResult Generator::generate(std::span<const int32_t> input_ids,
                                   const GenerateOptions& options, Streamer* streamer,
                                   Conversation* conversation, std::stop_token stop) {
  Answer answer(answer_parts(), input_ids, options, streamer);
  Conversation own(block_pool_);
  if (!conversation) conversation = &own;
  BlockTable& table = conversation->table;
  const std::vector<int32_t>& prompt = answer.prompt();
  const auto shared = std::mismatch(conversation->tokens.begin(), conversation->tokens.end(),
                                    prompt.begin(), prompt.end());
  const int64_t cached =
      std::min<int64_t>(shared.first - conversation->tokens.begin(), answer.reusable_tokens());
  table.set_length(cached);
  answer.set_cached_tokens(cached);
  // What lies beyond is overwritten from here on, whatever becomes of this generation.
  conversation->tokens.resize(static_cast<size_t>(cached));
  // All at once, as the dual view must not take more than plain AR; untouched pages cost nothing.
  int64_t most = max_seq_len_;
  if (options.max_new_tokens >= 0) {
    most = std::min(most,
                    static_cast<int64_t>(prompt.size()) + std::min(options.max_new_tokens, most));
  }
  table.reserve(most);
  answer.start(table);
  if (streamer && !streamer->skip_prompt()) streamer->on_prompt(prompt, loaded_.decode(prompt));

  Decoder* const decoder = answer.decoder();
  while (!decoder->finished()) {
    if (stop.stop_requested()) {
      answer.cancel();
      break;
    }
    DecodeLoop::Times times;
    loop_.step({&decoder, 1}, {&times, 1});
    answer.add(times);
  }
  GenerateResult result = answer.finish();
  const auto tokens = answer.tokens();
  const auto committed = std::min(static_cast<size_t>(table.length()), tokens.size());
  conversation->tokens.assign(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(committed));
  return result;
}

void Generator::generate_batch(std::span<const BatchRequest> requests,
                               const std::function<void(size_t, GenerateResult)>& done,
                               const std::function<void(size_t, const std::string&)>& failed,
                               std::stop_token stop) {
  struct Listener : EngineListener {
    void on_done(GenerateResult result) override {
      ended = true, (*done)(index, std::move(result));
    }
    void on_failed(const Error& error) override { ended = true, (*failed)(index, error.what()); }
    const std::function<void(size_t, GenerateResult)>* done;
    const std::function<void(size_t, const std::string&)>* failed;
    size_t index = 0;
    uint64_t id = 0;
    bool ended = false;
  };
  EngineOptions options;
  options.prefill_batch_size = options.decode_batch_size = batch_;
  options.dynamic_batch = false;
  options.prefill_share = std::numeric_limits<double>::infinity();  // nobody waits for a token
  Engine engine({answer_parts(), forward_, block_pool_}, options);
  std::list<Listener> listeners;
  size_t next = 0;
  do {
    if (stop.stop_requested()) {
      for (const Listener& listener : listeners) engine.cancel(listener.id);
      next = requests.size();
    }
    while (next < requests.size() && listeners.size() < static_cast<size_t>(batch_)) {
      Listener& listener = listeners.emplace_back();
      listener.done = &done;
      listener.failed = &failed;
      listener.index = next++;
      const BatchRequest& request = requests[listener.index];
      try {
        listener.id = engine.submit({request.input_ids, request.options, {}, 0}, listener);
      } catch (const Error& error) {
        listener.on_failed(error);
      }
    }
    engine.step();
    listeners.remove_if([](const Listener& listener) { return listener.ended; });
  } while (next < requests.size() || !listeners.empty());
}

}  // namespace orthrus
