#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "base/counter_rng.h"
#include "base/error.h"
#include "cache/block_table.h"
#include "decode/decoder.h"
#include "decode/sampler.h"

namespace orthrus {

using Tokens = std::vector<int32_t>;

inline Tokens prompt_of(int64_t size, int64_t vocab) {
  Tokens prompt;
  for (int64_t i = 0; i < size; ++i) prompt.push_back(static_cast<int32_t>((i * 7 + 3) % vocab));
  return prompt;
}

inline KvLayout small_layout() {
  return {.layers = 1,
          .kv_heads = 1,
          .head_dim = 16,
          .key_type = KvType::kF32,
          .value_type = KvType::kF32};
}

/// A language model without weights: the AR logits of a row are a fixed random function of the
/// tokens up to it; the diffusion logits are those of the AR view's own greedy continuation plus
/// `draft_noise` times random numbers. Reads the tokens through a cache as a real model does, so
/// that a decoder that commits wrong rows gets wrong logits.
class FakeModel {
 public:
  FakeModel(int64_t vocab, int64_t block_size, double draft_noise = 0, double spread = 2)
      : draft_noise_(draft_noise), spread_(spread) {
    model_.config.vocab_size = vocab;
    model_.config.block_size = block_size;
    model_.layers.resize(1);
    model_.layers[0].diff.emplace();
  }

  const Model& model() const { return model_; }
  Model& model() { return model_; }
  int64_t vocab() const { return model_.config.vocab_size; }

  std::vector<float> ar_logits(std::span<const int32_t> prefix) const {
    return row(prefix, /*salt=*/0, spread_);
  }
  /// Row `i` of a block whose anchor is prefix.back().
  std::vector<float> diffusion_logits(std::span<const int32_t> prefix, int64_t i) const {
    std::vector<int32_t> tokens(prefix.begin(), prefix.end());
    for (int64_t step = 0; step < i; ++step) tokens.push_back(best(ar_logits(tokens)));
    std::vector<float> logits = ar_logits(tokens);
    const std::vector<float> noise = row(prefix, static_cast<uint32_t>(i + 1), draft_noise_);
    for (size_t j = 0; j < logits.size(); ++j) logits[j] += noise[j];
    return logits;
  }

  /// What Forward::run gives for one span; checks that the span is one that a real model could run.
  std::vector<float> run(const Span& span) {
    std::vector<int32_t>& cache = caches_[span.table];
    const int64_t rows = static_cast<int64_t>(span.tokens.size());
    ORTHRUS_CHECK(span.first_position <= span.table->length());
    ORTHRUS_CHECK(span.logits_begin >= 0 && span.logits_end <= rows);
    std::vector<int32_t> prefix(cache.begin(), cache.begin() + span.first_position);
    std::vector<float> out;
    const auto append = [&](const std::vector<float>& logits) {
      out.insert(out.end(), logits.begin(), logits.end());
    };
    if (span.view == View::kAr) {
      ORTHRUS_CHECK(span.first_position + rows <= span.table->capacity());
      for (int64_t i = 0; i < rows; ++i) {
        prefix.push_back(span.tokens[static_cast<size_t>(i)]);
        if (i >= span.logits_begin && i < span.logits_end) append(ar_logits(prefix));
      }
      cache = prefix;
    } else {
      ORTHRUS_CHECK(span.tokens[0] >= 0 && rows <= model_.config.block_size);
      for (int64_t i = 1; i < rows; ++i)
        ORTHRUS_CHECK(span.tokens[static_cast<size_t>(i)] == kMaskToken);
      prefix.push_back(span.tokens[0]);
      for (int64_t i = span.logits_begin; i < span.logits_end; ++i) {
        append(diffusion_logits(prefix, i));
      }
    }
    if (spoil) spoil(span, out);
    if (span.reader == nullptr) return out;
    read(out, *span.reader);
    return {};
  }

  /// May change the logits of a span.
  std::function<void(const Span&, std::vector<float>&)> spoil;

  /// Hands the rows to a reader as lm_head would with three threads: pieces of any multiple of 16.
  void read(std::span<const float> rows, OutputReader& reader) const {
    constexpr int kThreads = 3;
    constexpr int64_t kPiece = 16;
    reader.begin(kThreads);
    const int64_t count = static_cast<int64_t>(rows.size()) / vocab();
    for (int64_t first = 0; first < vocab(); first += kPiece) {
      const auto size = static_cast<size_t>(std::min(kPiece, vocab() - first));
      for (int64_t row = 0; row < count; ++row) {
        const int thread = static_cast<int>(first / kPiece % kThreads);
        reader.read(thread, row, first,
                    rows.subspan(static_cast<size_t>(row * vocab() + first), size));
      }
    }
  }

  static int32_t best(const std::vector<float>& logits) {
    size_t b = 0;
    for (size_t i = 1; i < logits.size(); ++i) {
      if (logits[i] > logits[b]) b = i;
    }
    return static_cast<int32_t>(b);
  }

 private:
  /// Logits in [-spread, spread] * 2 from a hash of the last four tokens and the length.
  std::vector<float> row(std::span<const int32_t> prefix, uint32_t salt, double spread) const {
    std::array<uint32_t, 4> state{salt, static_cast<uint32_t>(prefix.size()), 0, 0};
    for (size_t i = prefix.size() > 4 ? prefix.size() - 4 : 0; i < prefix.size(); ++i) {
      state[2] = static_cast<uint32_t>(prefix[i]);
      state = philox4x32(state, {7, 11});
    }
    std::vector<float> logits(static_cast<size_t>(vocab()));
    for (size_t i = 0; i < logits.size(); ++i) {
      const auto bits =
          philox4x32({state[0], state[1], state[3], static_cast<uint32_t>(i)}, {3, 5});
      logits[i] =
          static_cast<float>((open_uniform(bits[0]) + open_uniform(bits[1]) - 1) * 2 * spread);
    }
    return logits;
  }

  Model model_;
  double draft_noise_, spread_;
  std::map<const BlockTable*, std::vector<int32_t>> caches_;
};

/// Everything one generation on a FakeModel needs.
struct FakeRun {
  explicit FakeRun(FakeModel& fake_model, std::vector<int32_t> prompt_tokens)
      : fake(fake_model),
        pool(small_layout(), 1024),
        table(pool),
        prompt(std::move(prompt_tokens)) {
    options.draft_max = 7;
  }

  Decoder::Setup setup() {
    Decoder::Setup s{};
    s.model = &fake.model();
    s.table = &table;
    s.prompt = prompt;
    s.options = &options;
    s.eos_token_ids = eos;
    s.max_seq_len = max_seq_len;
    s.prefill_chunk = prefill_chunk;
    s.cost = cost;
    s.sink = sink;
    s.drafter = drafter;
    s.constraint = constraint;
    return s;
  }
  /// Runs a decoder to its end.
  void drive(Decoder& decoder, int64_t max_rows = 4096) {
    while (!decoder.finished()) {
      const Span span = decoder.plan(max_rows, 1);
      ORTHRUS_CHECK(static_cast<int64_t>(span.tokens.size()) <= max_rows);
      decoder.consume(fake.run(span));
    }
  }
  GenerateResult generate(int64_t max_rows = 4096) {
    Decoder decoder(setup());
    drive(decoder, max_rows);
    return decoder.result();
  }

  FakeModel& fake;
  BlockPool pool;
  BlockTable table;
  std::vector<int32_t> prompt;
  GenerateOptions options;
  std::vector<int32_t> eos;
  int64_t max_seq_len = 4096;
  int64_t prefill_chunk = 512;
  CostModel* cost = nullptr;
  TokenSink* sink = nullptr;
  Drafter* drafter = nullptr;
  TokenConstraint* constraint = nullptr;
};

/// prompt + answer of plain AR, by definition rather than by Decoder's cycles.
inline Tokens reference_answer(const FakeModel& fake, const Tokens& prompt,
                               const SamplingOptions& sampling, int64_t count,
                               TokenConstraint* constraint = nullptr) {
  Sampler sampler(sampling, fake.vocab(), choose_isa(), static_cast<int64_t>(prompt.size()),
                  constraint);
  Tokens tokens = prompt;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(*sampler.choose(fake.ar_logits(tokens), tokens, NoiseStream::kToken));
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt.size()), tokens.end()};
}

}  // namespace orthrus
