#include "server/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

namespace orthrus {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using Buckets = Histogram::BucketBoundaries;

const Buckets kLatency = {.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80};
const Buckets kPerToken = {.001, .0025, .005, .01, .025, .05, .075, .1, .15, .2, .3, .5, 1, 2.5};
const Buckets kWhole = {.1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640};

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kStop:
      return "stop";
    case Outcome::kLength:
      return "length";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kError:
      return "error";
    case Outcome::kRejected:
      return "rejected";
  }
  return "error";
}

Outcome outcome_of(FinishReason reason) {
  if (reason == FinishReason::kStop) return Outcome::kStop;
  return reason == FinishReason::kLength ? Outcome::kLength : Outcome::kCancelled;
}

/// How many cycles reached each position of a block. The counters are looked up once.
class Positions {
 public:
  explicit Positions(Family<Counter>& family) : family_(family) {}

  /// Those up to `count` are shown from now on.
  void prepare(int64_t count) {
    const std::lock_guard lock(mutex_);
    grow(count);
  }
  /// A cycle reached the positions from 1 to `count`.
  void reached(int64_t count) {
    const std::lock_guard lock(mutex_);
    grow(count);
    for (int64_t p = 0; p < count; ++p) counters_[static_cast<size_t>(p)]->Increment();
  }

 private:
  void grow(int64_t count) {
    while (static_cast<int64_t>(counters_.size()) < count) {
      counters_.push_back(&family_.Add({{"position", std::to_string(counters_.size() + 1)}}));
    }
  }

  Family<Counter>& family_;
  std::mutex mutex_;
  std::vector<Counter*> counters_;
};

}  // namespace

struct Metrics::Impl {
  Family<Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
  }
  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
  }
  Gauge& gauge(const char* name, const char* help) { return gauges(name, help).Add({}); }
  Counter& counter(const char* name, const char* help) { return counters(name, help).Add({}); }
  Histogram& histogram(const char* name, const char* help, const Buckets& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
  }
  /// A counter whose value someone else counts.
  static void raise_to(Counter& counter, int64_t value) {
    counter.Increment(std::max(0.0, static_cast<double>(value) - counter.Value()));
  }

  prometheus::Registry registry;
  Family<Gauge>& requests = gauges("orthrus_requests", "Answers by state");
  Gauge& waiting = requests.Add({{"state", "waiting"}});
  Gauge& prefilling = requests.Add({{"state", "prefilling"}});
  Gauge& decoding = requests.Add({{"state", "decoding"}});
  Family<Counter>& ended = counters("orthrus_requests_total", "Answers that ended");
  Gauge& batch = gauge("orthrus_batch_size", "Answers that may be written at once");
  Family<Gauge>& blocks = gauges("orthrus_kv_blocks", "Blocks of the KV budget by state");
  Gauge& in_use = blocks.Add({{"state", "in_use"}});
  Gauge& idle = blocks.Add({{"state", "idle"}});
  Gauge& free = blocks.Add({{"state", "free"}});
  Gauge& utilization = gauge("orthrus_kv_utilization", "Blocks in use / blocks of the budget");
  Histogram& ttft = histogram("orthrus_time_to_first_token_seconds",
                              "From a request's arrival to its first token", kLatency);
  Histogram& token_latency = histogram("orthrus_inter_token_latency_seconds",
                                       "Time between steps of an answer / its tokens", kPerToken);
  Histogram& request_seconds =
      histogram("orthrus_request_seconds", "From a request's arrival to its answer's end", kWhole);
  Counter& prompt_tokens = counter("orthrus_prompt_tokens_total", "Tokens of prompts");
  Counter& cached_tokens =
      counter("orthrus_cached_prompt_tokens_total", "Tokens of prompts found in the cache");
  Counter& generated = counter("orthrus_generated_tokens_total", "Tokens of answers");
  Counter& cycles = counter("orthrus_cycles_total", "Cycles; a plain AR step is one");
  Counter& passes = counter("orthrus_forward_passes_total",
                            "Forward passes that answers took part in, a prompt's counted as one");
  Counter& steps = counter("orthrus_steps_total", "Steps of the engine: passes over the weights");
  Counter& drafted = counter("orthrus_draft_tokens_total", "Drafted tokens");
  Counter& accepted = counter("orthrus_accepted_tokens_total", "Accepted drafts");
  Positions drafted_at{
      counters("orthrus_drafted_at_position_total", "Cycles that judged a draft at the position")};
  Positions accepted_at{
      counters("orthrus_accepted_at_position_total", "Cycles that accepted the position's draft")};
  Counter& preemptions = counter("orthrus_preemptions_total", "Answers that gave up their blocks");
  Counter& prefix_hits =
      counter("orthrus_prefix_hits_total", "Answers that found a part of their prompt");
  Gauge& kl_mean = gauge("orthrus_kl_mean", "Mean KL(AR || diffusion) of judged drafts, in nats");
  Gauge& conflict_rate =
      gauge("orthrus_conflict_rate", "Share of judged drafts with KL over the threshold");
  Counter& rejected =
      counter("orthrus_queue_rejected_total", "Requests refused because the queue was full");
  Gauge& connections = gauge("orthrus_http_connections", "Open HTTP connections");

  Impl() {  // until something is judged
    kl_mean.Set(std::numeric_limits<double>::quiet_NaN());
    conflict_rate.Set(std::numeric_limits<double>::quiet_NaN());
  }

  std::mutex mutex;  // of what follows
  double judged = 0, kl_sum = 0, conflict_sum = 0;
};

Metrics::Metrics(const std::string& version) : impl_(std::make_unique<Impl>()) {
  impl_->gauges("orthrus_build_info", "1").Add({{"version", version}}).Set(1);
}

Metrics::~Metrics() = default;

void Metrics::set_model(const Model& model) {
  Impl& m = *impl_;
  m.gauges("orthrus_model_info", "1")
      .Add(
          {{"model", model.name}, {"weights", model.weights}, {"view", model.dual ? "dual" : "ar"}})
      .Set(1);
  m.drafted_at.prepare(model.block_size - 1);
  m.accepted_at.prepare(model.block_size - 1);
}

void Metrics::first_token(double seconds) { impl_->ttft.Observe(seconds); }

void Metrics::next_tokens(double seconds, int64_t tokens) {
  impl_->token_latency.Observe(seconds / static_cast<double>(tokens));
}

void Metrics::worked(const GenerateResult& so_far, Counted& counted) {
  Impl& m = *impl_;
  const auto add = [](Counter& counter, int64_t now, int64_t& before) {
    if (now <= before) return;  // a draft pass that is to be repeated was taken back
    counter.Increment(static_cast<double>(now - before));
    before = now;
  };
  add(m.generated, static_cast<int64_t>(so_far.token_ids.size()), counted.tokens);
  add(m.cycles, so_far.cycles, counted.cycles);
  add(m.passes, so_far.forward_passes, counted.passes);
  add(m.drafted, so_far.drafted, counted.drafted);
  add(m.accepted, so_far.accepted, counted.accepted);
  for (size_t& c = counted.judged_cycles; c < so_far.drafted_per_cycle.size(); ++c) {
    m.drafted_at.reached(so_far.drafted_per_cycle[c]);
    m.accepted_at.reached(so_far.accepted_per_cycle[c]);
  }
}

void Metrics::answered(const std::string& endpoint, const GenerateResult& result, double seconds) {
  Impl& m = *impl_;
  const auto outcome = outcome_of(result.finish_reason);
  m.ended.Add({{"endpoint", endpoint}, {"outcome", outcome_name(outcome)}}).Increment();
  m.request_seconds.Observe(seconds);
  m.prompt_tokens.Increment(static_cast<double>(result.prompt_tokens));
  m.cached_tokens.Increment(static_cast<double>(result.cached_tokens));
  if (!result.kl_mean || !result.conflict_rate) return;
  const std::lock_guard lock(m.mutex);
  const double weight = static_cast<double>(result.drafted);
  m.judged += weight;
  m.kl_sum += weight * *result.kl_mean;
  m.conflict_sum += weight * *result.conflict_rate;
  if (m.judged == 0) return;
  m.kl_mean.Set(m.kl_sum / m.judged);
  m.conflict_rate.Set(m.conflict_sum / m.judged);
}

void Metrics::failed(const std::string& endpoint, Outcome outcome) {
  impl_->ended.Add({{"endpoint", endpoint}, {"outcome", outcome_name(outcome)}}).Increment();
  if (outcome == Outcome::kRejected) impl_->rejected.Increment();
}

std::string Metrics::text(const EngineStats* engine, int64_t http_connections) {
  Impl& m = *impl_;
  m.connections.Set(static_cast<double>(http_connections));
  if (engine) {
    const auto set = [](Gauge& gauge, int64_t n) { gauge.Set(static_cast<double>(n)); };
    set(m.waiting, engine->waiting);
    set(m.prefilling, engine->prefilling);
    set(m.decoding, engine->decoding);
    set(m.batch, engine->batch);
    set(m.in_use, engine->blocks_in_use);
    set(m.idle, engine->blocks_idle);
    set(m.free, engine->blocks - engine->blocks_in_use - engine->blocks_idle);
    if (engine->blocks > 0) {
      m.utilization.Set(static_cast<double>(engine->blocks_in_use) /
                        static_cast<double>(engine->blocks));
    }
    const std::lock_guard lock(m.mutex);
    Impl::raise_to(m.steps, engine->steps);
    Impl::raise_to(m.preemptions, engine->preemptions);
    Impl::raise_to(m.prefix_hits, engine->prefix_hits);
  }
  return prometheus::TextSerializer().Serialize(m.registry.Collect());
}

}  // namespace orthrus
