#include "decode/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "base/counter_rng.h"
#include "base/error.h"

namespace orthrus {
namespace {

constexpr double kNegativeInfinity = -std::numeric_limits<double>::infinity();
/// Smaller temperatures, which some clients send for 0, act as this one: logits / T stays finite.
constexpr double kMinTemperature = 1e-6;

void check_options(const SamplingOptions& o, int64_t vocab_size) {
  const auto check = [](bool ok, const char* name, const char* expected, double found) {
    if (!ok) fail_usage("sampling: {}: expected {}, found {}", name, expected, found);
  };
  check(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", "0 or more",
        o.temperature);
  check(o.top_k >= 0, "top-k", "0 or more", static_cast<double>(o.top_k));
  check(o.top_p > 0 && o.top_p <= 1, "top-p", "above 0, at most 1", o.top_p);
  check(o.min_p >= 0 && o.min_p <= 1, "min-p", "0 to 1", o.min_p);
  check(o.repeat_penalty > 0 && std::isfinite(o.repeat_penalty), "repeat-penalty", "above 0",
        o.repeat_penalty);
  check(o.repeat_last_n >= -1, "repeat-last-n", "-1 or more", static_cast<double>(o.repeat_last_n));
  check(std::isfinite(o.presence_penalty), "presence-penalty", "a finite number",
        o.presence_penalty);
  check(std::isfinite(o.frequency_penalty), "frequency-penalty", "a finite number",
        o.frequency_penalty);
  for (const auto& [token, bias] : o.logit_bias) {
    if (token < 0 || token >= vocab_size) {
      fail_usage("sampling: logit-bias: expected a token id below {}, found {}", vocab_size, token);
    }
    check(std::isfinite(bias) || bias == kNegativeInfinity, "logit-bias",
          "a finite number or -infinity", bias);
  }
}

bool has_penalties(const SamplingOptions& o) {
  const bool counting = o.presence_penalty != 0 || o.frequency_penalty != 0;
  return (o.repeat_last_n != 0 && (o.repeat_penalty != 1 || counting)) ||
         (o.penalties_of_answer && counting);
}

}  // namespace

double Distribution::of(int32_t token) const {
  const auto it = std::lower_bound(ids.begin(), ids.end(), token);
  return it != ids.end() && *it == token ? probabilities[static_cast<size_t>(it - ids.begin())]
                                         : 0.0;
}

Sampler::Sampler(const SamplingOptions& options, int64_t vocab_size, Isa isa, int64_t answer_begin,
                 TokenConstraint* constraint)
    : options_(options),
      vocab_size_(vocab_size),
      answer_begin_(static_cast<size_t>(answer_begin)),
      constraint_(constraint),
      ops_(row_ops(isa)),
      noise_block_(noise_block(isa)) {
  check_options(options, vocab_size);
  if (!greedy()) options_.temperature = std::max(options.temperature, kMinTemperature);
  const size_t vocab = static_cast<size_t>(vocab_size);
  if (has_penalties(options)) counts_.resize(vocab);
  if (has_penalties(options) || !options.logit_bias.empty() || constraint) row_.resize(vocab);
  if (!greedy()) {
    weights_.resize(vocab);
    candidates_.reserve(vocab);
  }
}

NoiseKey Sampler::key(int64_t position, NoiseStream stream) const {
  return {options_.seed, options_.choice, static_cast<uint32_t>(position), stream};
}

float Sampler::weight_scale() const { return static_cast<float>(1 / options_.temperature); }

void Sampler::apply_bias() {
  for (const auto& [token, bias] : options_.logit_bias) {
    if (token >= size_) continue;
    float& logit = row_[static_cast<size_t>(token)];
    logit = static_cast<float>(logit + bias);
  }
}

void Sampler::apply_penalties(std::span<const int32_t> history) {
  const SamplingOptions& o = options_;
  const size_t n = static_cast<size_t>(o.repeat_last_n);
  const auto window = o.repeat_last_n < 0 || n >= history.size() ? history : history.last(n);
  if (!o.penalties_of_answer) {
    return penalise(window, o.repeat_penalty, o.presence_penalty, o.frequency_penalty);
  }
  penalise(window, o.repeat_penalty, 0, 0);
  penalise(history.subspan(answer_begin_), 1, o.presence_penalty, o.frequency_penalty);
}

/// The three penalties of llama.cpp and Hugging Face over the distinct ones of `tokens`.
void Sampler::penalise(std::span<const int32_t> tokens, double repeat, double presence,
                       double frequency) {
  if (repeat == 1 && presence == 0 && frequency == 0) return;
  for (const int32_t token : tokens) ++counts_[static_cast<size_t>(token)];
  for (const int32_t token : tokens) {
    int32_t& count = counts_[static_cast<size_t>(token)];
    const int32_t times = std::exchange(count, 0);
    if (times == 0 || token >= size_) continue;  // seen before, or not in the row
    float& logit = row_[static_cast<size_t>(token)];
    double value = logit;
    value = value > 0 ? value / repeat : value * repeat;
    value -= times * frequency + presence;
    logit = static_cast<float>(value);
  }
}

void Sampler::apply_constraint(std::span<const int32_t> answer) {
  const std::span<const uint64_t> words = constraint_->allowed(answer);
  if (words.empty()) return;
  const int64_t vocab = size_;
  constexpr float kBanned = -std::numeric_limits<float>::infinity();
  for (int64_t begin = 0; begin < vocab; begin += 64) {
    const size_t word = static_cast<size_t>(begin / 64);
    const uint64_t bits = word < words.size() ? words[word] : 0;
    const int64_t size = std::min<int64_t>(64, vocab - begin);
    float* const x = row_.data() + begin;
    if (bits == 0) {
      std::fill_n(x, size, kBanned);
      continue;
    }
    for (uint64_t banned = ~bits; banned != 0; banned &= banned - 1) {
      const int bit = std::countr_zero(banned);
      if (bit < size) x[bit] = kBanned;
    }
  }
}

std::optional<Sampler::Row> Sampler::prepare(std::span<const float> logits,
                                             std::span<const int32_t> history) {
  size_ = static_cast<int64_t>(logits.size());
  ORTHRUS_CHECK(size_ > 0 && size_ <= vocab_size_);
  const float* x = logits.data();
  int64_t best = ops_.argmax(x, size_);
  if (best < 0) return std::nullopt;  // also where a ban would hide the NaN
  if (!row_.empty()) {
    std::copy(logits.begin(), logits.end(), row_.begin());
    apply_bias();
    if (!counts_.empty()) apply_penalties(history);
    if (constraint_) apply_constraint(history.subspan(answer_begin_));
    x = row_.data();
    best = ops_.argmax(x, size_);
  }
  if (best < 0 || std::isinf(x[best])) return std::nullopt;
  return Row{x, static_cast<int32_t>(best)};
}

void Sampler::gather(const float* x, float threshold) {
  candidates_.clear();
  for (int64_t i = 0; i < size_; ++i) {
    if (x[i] >= threshold) candidates_.push_back({x[i], static_cast<int32_t>(i), 0});
  }
}

/// The k best. Whenever twice as many have gathered, the lesser half goes and the bar
/// rises.
void Sampler::gather_top_k(const Row& row, int64_t k) {
  const size_t kept = static_cast<size_t>(k);
  const auto cut = [&] {
    const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(kept);
    std::nth_element(candidates_.begin(), end - 1, candidates_.end(), before);
    candidates_.resize(kept);
  };
  float bar = -std::numeric_limits<float>::infinity();
  candidates_.clear();
  for (int64_t i = 0; i < size_; ++i) {
    if (!(row.x[i] > bar)) continue;  // an equal one has the higher id
    candidates_.push_back({row.x[i], static_cast<int32_t>(i), 0});
    if (candidates_.size() < 2 * kept + 64) continue;
    cut();
    bar = candidates_.back().logit;
  }
  if (candidates_.size() > kept) cut();
}

/// Enough of the best tokens to hold the mass top_p of all.
void Sampler::gather_top_p(const Row& row) {
  const float best = row.x[row.best];
  const double total = ops_.exp_sum(row.x, best, weight_scale(), size_, weights_.data());
  const double wanted = options_.top_p * total;
  // The floor goes down until they do; at last every token that is not banned is there.
  for (float floor = 0x1p-8f;; floor *= 0x1p-4f) {
    const bool last = floor < 0x1p-60f;
    double mass = 0;
    candidates_.clear();
    for (int64_t i = 0; i < size_; ++i) {
      const float weight = weights_[static_cast<size_t>(i)];
      if (weight >= floor || (last && std::isfinite(row.x[i]))) {
        candidates_.push_back({row.x[i], static_cast<int32_t>(i), weight});
        mass += weight;
      }
    }
    if (last || mass >= wanted) break;
  }
  keep_top_p(wanted);
}

/// Gives the candidates their weights; returns the sum.
double Sampler::weigh_candidates(float best) {
  const size_t n = candidates_.size();
  for (size_t i = 0; i < n; ++i) weights_[i] = candidates_[i].logit;
  const float sum =
      ops_.exp_sum(weights_.data(), best, weight_scale(), static_cast<int64_t>(n), weights_.data());
  for (size_t i = 0; i < n; ++i) candidates_[i].weight = weights_[i];
  return sum;
}

/// Cuts the candidates to the fewest best ones with the mass `wanted`, the one reaching it
/// included. Halves the range in which the cut lies, so that only a few are sorted.
void Sampler::keep_top_p(double wanted) {
  const auto at = [&](size_t i) { return candidates_.begin() + static_cast<std::ptrdiff_t>(i); };
  size_t low = 0, high = candidates_.size();  // [0, low) stay, [high, ...) go
  double mass = 0;                            // of [0, low)
  while (high - low > 64) {
    const size_t middle = (low + high) / 2;
    std::nth_element(at(low), at(middle), at(high), before);
    double better = 0;
    for (size_t i = low; i < middle; ++i) better += candidates_[i].weight;
    if (mass + better >= wanted) {
      high = middle;
    } else {
      mass += better;
      low = middle;
    }
  }
  std::sort(at(low), at(high), before);
  while (low < high && mass < wanted) mass += candidates_[low++].weight;
  candidates_.resize(std::max<size_t>(low, 1));
}

bool Sampler::filter(const Row& row) {
  const bool top_k = options_.top_k > 0 && options_.top_k < size_;
  const bool top_p = options_.top_p < 1;
  if (!top_k && !top_p && options_.min_p == 0) return false;
  // p >= min_p * p_best, on the logits; the best token itself always passes.
  const float best = row.x[row.best];
  const float floor =
      options_.min_p == 0
          ? std::numeric_limits<float>::lowest()
          : static_cast<float>(best + options_.temperature * log_double(options_.min_p));
  if (top_k) {
    gather_top_k(row, options_.top_k);
    if (top_p) keep_top_p(options_.top_p * weigh_candidates(best));
  } else if (top_p) {
    gather_top_p(row);
  } else {
    gather(row.x, floor);
    return true;
  }
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < floor; });
  return true;
}

std::optional<int32_t> Sampler::choose(std::span<const float> logits,
                                       std::span<const int32_t> history, NoiseStream stream) {
  const auto row = prepare(logits, history);
  if (!row) return std::nullopt;
  if (greedy()) return row->best;
  const NoiseKey noise = key(static_cast<int64_t>(history.size()), stream);
  if (!filter(*row)) {
    RowMaximum best(draw_of_rows(), noise);
    best.add(row->x, 0, size_, row->best);
    return best.token();
  }
  int32_t best = -1;
  double best_value = kNegativeInfinity;
  for (const Candidate& c : candidates_) {
    const uint32_t bits = noise_bits_of(noise, static_cast<uint32_t>(c.id));
    const double scaled = c.logit / options_.temperature;
    if (best >= 0 && bits < least_bits(best_value - scaled)) continue;  // cannot win
    const double value = scaled + gumbel(bits);
    if (best < 0 || value > best_value || (value == best_value && c.id < best)) {
      best = c.id;
      best_value = value;
    }
  }
  return best;
}

bool Sampler::distribution(std::span<const float> logits, std::span<const int32_t> history,
                           Distribution& out) {
  const auto row = prepare(logits, history);
  if (!row) return false;
  out.ids.clear();
  out.probabilities.clear();
  if (greedy()) {
    out.ids.push_back(row->best);
    out.probabilities.push_back(1);
    return true;
  }
  if (!filter(*row)) gather(row->x, std::numeric_limits<float>::lowest());
  const auto by_id = [](const Candidate& a, const Candidate& b) { return a.id < b.id; };
  if (!std::is_sorted(candidates_.begin(), candidates_.end(), by_id)) {
    std::sort(candidates_.begin(), candidates_.end(), by_id);
  }
  weigh_candidates(row->x[row->best]);
  double total = 0;
  for (const Candidate& c : candidates_) total += c.weight;
  for (const Candidate& c : candidates_) {
    out.ids.push_back(c.id);
    out.probabilities.push_back(c.weight / total);
  }
  return true;
}

int32_t Sampler::draw(std::span<const int32_t> ids, std::span<const double> weights,
                      int64_t position, NoiseStream stream) const {
  const NoiseKey noise = key(position, stream);
  int32_t best = -1;
  double best_value = kNegativeInfinity;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!(weights[i] >= std::numeric_limits<double>::min())) continue;  // 0, or too small to matter
    const double value =
        log_double(weights[i]) + gumbel(noise_bits_of(noise, static_cast<uint32_t>(ids[i])));
    if (best < 0 || value > best_value) {
      best = ids[i];
      best_value = value;
    }
  }
  ORTHRUS_CHECK(best >= 0);
  return best;
}

double Sampler::acceptance_uniform(int64_t position) const {
  return open_uniform(noise_bits_of(key(position, NoiseStream::kAcceptance), 0));
}

}  // namespace orthrus
