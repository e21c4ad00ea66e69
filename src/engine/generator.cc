#include "engine/generator.h"

#include <algorithm>
#include <limits>
#include <list>

#include "base/error.h"
#include "base/log.h"
#include "engine/engine.h"
#include "engine/machine_cache.h"
#include "engine/request_prompt.h"
#include "engine/text_sink.h"

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

/// Rows that one pass may carry: a prefill chunk, or a full draft block of every sequence and a bit
/// of a prompt.
int64_t rows_for(int64_t ubatch, int64_t batch, const ModelConfig& config) {
  const int64_t blocks = batch * std::max<int64_t>(1, config.block_size);
  return std::max(ubatch, blocks + (batch > 1 ? DecodeLoop::kLeastPrefillRows : 0));
}

}  // namespace

/// One running generation and what it owns.
struct Generator::Active {
  Active(const Tokenizer& tokenizer, const GenerateOptions& generate_options, Streamer* streamer)
      : options(generate_options), sink(tokenizer, generate_options.stop, streamer) {}

  GenerateOptions options;
  TextSink sink;
  std::vector<int32_t> prompt;
  std::unique_ptr<Conversation> own;  // where the caller brought none
  Conversation* conversation = nullptr;
  int64_t cached_tokens = 0;
  std::unique_ptr<Decoder> decoder;
  DecodeLoop::Times times;
};

Generator::Generator(const LoadOptions& options)
    : threads_(make_threads(options)),
      context_{choose_isa(), *threads_},
      loaded_(open_model(options, *threads_)),
      max_seq_len_(context_limit(options, loaded_.model.config)),
      batch_(options.batch),
      ubatch_(std::min(options.ubatch, max_seq_len_)),
      block_pool_(layout_for(options, loaded_.model.config), batch_ * blocks_for(max_seq_len_)),
      forward_(loaded_.model, block_pool_.layout(), context_,
               rows_for(ubatch_, batch_, loaded_.model.config)),
      cost_(loaded_.model, block_pool_.layout(), machine_rates(context_)),
      loop_(forward_, cost_) {}

std::unique_ptr<Generator::Active> Generator::start(std::span<const int32_t> input_ids,
                                                    const GenerateOptions& options,
                                                    Streamer* streamer,
                                                    Conversation* conversation) {
  auto active = std::make_unique<Active>(loaded_.tokenizer, options, streamer);
  active->prompt = request_prompt(input_ids, loaded_.model.config, max_seq_len_);
  const auto size = static_cast<int64_t>(active->prompt.size());
  if (!conversation) {
    active->own = std::make_unique<Conversation>(block_pool_);
    conversation = active->own.get();
  }
  active->conversation = conversation;
  const auto shared = std::mismatch(conversation->tokens.begin(), conversation->tokens.end(),
                                    active->prompt.begin(), active->prompt.end());
  active->cached_tokens = std::min<int64_t>(shared.first - conversation->tokens.begin(), size - 1);
  conversation->table.set_length(active->cached_tokens);
  // What lies beyond is overwritten from here on, whatever becomes of this generation.
  conversation->tokens.resize(static_cast<size_t>(active->cached_tokens));
  // All at once, as the dual view must not take more than plain AR; untouched pages cost nothing.
  int64_t most = max_seq_len_;
  if (options.max_new_tokens >= 0)
    most = std::min(most, size + std::min(options.max_new_tokens, most));
  conversation->table.reserve(most);
  Decoder::Setup setup{};
  setup.model = &loaded_.model;
  setup.table = &conversation->table;
  setup.prompt = active->prompt;
  setup.options = &active->options;
  setup.eos_token_ids = loaded_.model.config.eos_token_ids;
  setup.max_seq_len = max_seq_len_;
  setup.prefill_chunk = ubatch_;
  setup.cost = &cost_;
  setup.sink = &active->sink;
  setup.drafter = drafter_;
  active->decoder = std::make_unique<Decoder>(setup);
  if (streamer && !streamer->skip_prompt()) {
    streamer->on_prompt(active->prompt, loaded_.decode(active->prompt));
  }
  return active;
}

GenerateResult Generator::finish(Active& active) {
  active.sink.finish();
  GenerateResult result = active.decoder->result();
  result.text = active.sink.text();
  result.prompt_tokens = static_cast<int64_t>(active.prompt.size());
  result.cached_tokens = active.cached_tokens;
  result.prefill_seconds = active.times.prefill_seconds;
  result.decode_seconds = active.times.decode_seconds;
  BlockTable& table = active.conversation->table;
  result.kv_bytes = static_cast<int64_t>(table.bytes());
  const auto tokens = active.decoder->tokens();
  const auto committed = std::min(static_cast<size_t>(table.length()), tokens.size());
  active.conversation->tokens.assign(tokens.begin(),
                                     tokens.begin() + static_cast<ptrdiff_t>(committed));
  return result;
}

GenerateResult Generator::generate(std::span<const int32_t> input_ids,
                                   const GenerateOptions& options, Streamer* streamer,
                                   Conversation* conversation, std::stop_token stop) {
  const auto active = start(input_ids, options, streamer, conversation);
  Decoder* const decoder = active->decoder.get();
  while (!decoder->finished()) {
    if (stop.stop_requested()) {
      decoder->cancel();
      break;
    }
    loop_.step({&decoder, 1}, {&active->times, 1});
  }
  return finish(*active);
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
  Engine engine({loaded_, forward_, cost_, block_pool_, max_seq_len_, ubatch_, drafter_}, options);
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
