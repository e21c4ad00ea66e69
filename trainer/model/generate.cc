#include "trainer/model/generate.h"

#include <algorithm>

#include "base/error.h"
#include "decode/noise.h"

namespace orthrus::train {
namespace {

int64_t stride_of(const BatchOptions& options, at::Device device) {
  if (options.stride > 0) return options.stride;
  return device.is_cpu() ? 1 : 16;
}

/// In [0, 1), of the token at a position.
float uniform(uint64_t seed, int64_t position) {
  const NoiseKey key{seed, 0, static_cast<uint32_t>(position), NoiseStream::kToken};
  return static_cast<float>(noise_bits_of(key, 0) >> 8) * 0x1p-24f;
}

/// logits [rows, vocab], which are overwritten; uniforms [rows]. Returns token ids [rows] int64.
at::Tensor choose(at::Tensor logits, const at::Tensor& uniforms, double temperature) {
  if (temperature == 0) return logits.argmax(-1);
  // So low a temperature would make the best logit infinite: it stands at 0 then.
  constexpr double kLow = 1e-6;
  if (temperature < kLow) {
    logits = (logits - logits.amax(-1, /*keepdim=*/true)).to(at::kDouble).div_(temperature);
  } else {
    logits.div_(temperature);
  }
  const at::Tensor sums = at::softmax(logits.to(at::kFloat), -1).cumsum(-1);
  const at::Tensor target = uniforms.unsqueeze(1) * sums.narrow(1, sums.size(1) - 1, 1);
  // The first token whose cumulated probability lies above the target.
  return at::searchsorted(sums, target, /*out_int32=*/false, /*right=*/true)
      .clamp_max_(sums.size(1) - 1)
      .squeeze(1);
}

class Batch {
 public:
  Batch(ArDecoder& decoder, std::span<const AnswerRequest> requests, const BatchOptions& options,
        const OnAnswer& on_answer)
      : decoder_(decoder),
        requests_(requests),
        options_(options),
        on_answer_(on_answer),
        stride_(stride_of(options, decoder.device())) {}

  void run() {
    const auto rows = std::min<int64_t>(options_.rows, static_cast<int64_t>(requests_.size()));
    decoder_.reserve(rows, capacity());
    rows_.resize(static_cast<size_t>(rows));
    for (;;) {
      refill();
      drop_idle_rows();
      if (rows_.empty()) return;
      advance();
    }
  }

 private:
  struct Row {
    bool busy = false;
    size_t request = 0;
    int64_t limit = 0;  // most tokens of the answer
    std::vector<int32_t> answer;
  };

  int64_t limit_of(const AnswerRequest& request) const {
    const int64_t room =
        decoder_.config().max_position_embeddings - static_cast<int64_t>(request.prompt.size());
    return std::min(options_.max_tokens, room);
  }

  /// Checks the requests. Rows run on to the end of a stride before their end is noticed.
  int64_t capacity() const {
    const ModelConfig& config = decoder_.config();
    int64_t most = 0;
    for (size_t i = 0; i < requests_.size(); ++i) {
      const std::vector<int32_t>& prompt = requests_[i].prompt;
      if (prompt.empty()) fail("prompt {} is empty", i);
      if (limit_of(requests_[i]) < 1) {
        fail("prompt {} has {} tokens, but the model's context holds {}", i, prompt.size(),
             config.max_position_embeddings);
      }
      for (const int32_t token : prompt) {
        if (token < 0 || token >= config.vocab_size) {
          fail("prompt {}: token {} is outside the vocabulary of {}", i, token, config.vocab_size);
        }
      }
      most = std::max(most, static_cast<int64_t>(prompt.size()) + limit_of(requests_[i]));
    }
    return most + stride_;
  }

  int64_t position_of(const Row& row) const {  // of the newest token, which is not cached yet
    return static_cast<int64_t>(requests_[row.request].prompt.size() + row.answer.size()) - 1;
  }

  float uniform_of(const Row& row, int64_t position) const {
    return row.busy ? uniform(requests_[row.request].seed, position) : 0.0f;
  }

  at::Tensor on_device(const std::vector<int64_t>& values) const {
    return at::tensor(values, at::kLong).to(decoder_.device());
  }
  at::Tensor on_device(const std::vector<float>& values) const {
    return at::tensor(values, at::kFloat).to(decoder_.device());
  }

  /// Gives idle rows new requests until all are busy or none is left.
  void refill() {
    for (;;) {
      std::vector<int64_t> cache_rows;
      std::vector<std::span<const int32_t>> prompts;
      std::vector<float> uniforms;
      for (size_t i = 0; i < rows_.size() && next_ < requests_.size(); ++i) {
        Row& row = rows_[i];
        if (row.busy) continue;
        const AnswerRequest& request = requests_[next_];
        row = {true, next_++, limit_of(request), {}};
        cache_rows.push_back(static_cast<int64_t>(i));
        prompts.emplace_back(request.prompt);
        uniforms.push_back(uniform_of(row, position_of(row) + 1));
      }
      if (prompts.empty()) return;
      const at::Tensor tokens =
          choose(decoder_.prefill(prompts, cache_rows), on_device(uniforms), options_.temperature)
              .to(at::kCPU);
      for (size_t i = 0; i < cache_rows.size(); ++i) {
        append(rows_[static_cast<size_t>(cache_rows[i])], tokens.data_ptr<int64_t>()[i]);
      }
    }
  }

  /// Once a quarter of the rows has nothing to do: each time costs a copy of the cache.
  void drop_idle_rows() {
    std::vector<int64_t> kept;
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].busy) kept.push_back(static_cast<int64_t>(i));
    }
    if ((rows_.size() - kept.size()) * 4 < rows_.size()) return;
    if (!kept.empty()) decoder_.keep(kept);
    std::erase_if(rows_, [](const Row& row) { return !row.busy; });
  }

  /// stride_ tokens more for every row. Idle rows run along at position 0.
  void advance() {
    std::vector<int64_t> tokens, positions;
    std::vector<float> uniforms;
    int64_t longest = 0;
    for (const Row& row : rows_) {
      tokens.push_back(row.busy ? row.answer.back() : 0);
      positions.push_back(row.busy ? position_of(row) : 0);
      longest = std::max(longest, positions.back());
    }
    for (int64_t s = 1; s <= stride_; ++s) {
      for (size_t i = 0; i < rows_.size(); ++i) {
        uniforms.push_back(uniform_of(rows_[i], positions[i] + s));
      }
    }
    at::Tensor token = on_device(tokens), position = on_device(positions);
    const at::Tensor noise = on_device(uniforms).view({stride_, -1});
    std::vector<at::Tensor> made;
    for (int64_t s = 0; s < stride_; ++s) {
      token =
          choose(decoder_.step(token, position, longest + s + 1), noise[s], options_.temperature);
      position = position + 1;
      made.push_back(token);
    }
    const at::Tensor all = at::stack(made, 1).to(at::kCPU).contiguous();
    const int64_t* next = all.data_ptr<int64_t>();
    for (Row& row : rows_) {
      for (int64_t s = 0; s < stride_ && row.busy; ++s) append(row, next[s]);
      next += stride_;
    }
  }

  void append(Row& row, int64_t token) {
    row.answer.push_back(static_cast<int32_t>(token));
    const auto& ends = decoder_.config().eos_token_ids;
    const bool ended = std::find(ends.begin(), ends.end(), row.answer.back()) != ends.end();
    if (!ended && static_cast<int64_t>(row.answer.size()) < row.limit) return;
    row.busy = false;
    on_answer_(row.request, std::move(row.answer));
  }

  ArDecoder& decoder_;
  std::span<const AnswerRequest> requests_;
  BatchOptions options_;
  const OnAnswer& on_answer_;
  int64_t stride_;
  size_t next_ = 0;
  std::vector<Row> rows_;
};

}  // namespace

void generate(ArDecoder& decoder, std::span<const AnswerRequest> requests,
              const BatchOptions& options, const OnAnswer& on_answer) {
  ORTHRUS_CHECK(options.rows >= 1 && options.max_tokens >= 1);
  if (requests.empty()) return;
  const at::InferenceMode inference;
  Batch(decoder, requests, options, on_answer).run();
}

}  // namespace orthrus::train
