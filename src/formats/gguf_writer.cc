#include "formats/gguf_writer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "formats/gguf_keys.h"
#include "formats/rope_scaling.h"

namespace orthrus {
namespace {

constexpr uint32_t kVersion = 3;
constexpr uint64_t kAlignment = 32;  // where no general.alignment says otherwise

// Type numbers of metadata values.
enum : uint32_t { kU32 = 4, kI32 = 5, kF32 = 6, kBool = 7, kString = 8, kArray = 9, kF64 = 12 };

// Little endian, as every machine that this program runs on.
template <typename T>
void put(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  out.append(text);
}

uint64_t aligned(uint64_t size) { return (size + kAlignment - 1) / kAlignment * kAlignment; }

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

void GgufPairs::encoded(std::string_view key, std::span<const std::byte> value) {
  put_string(bytes_, key);
  bytes_.append(reinterpret_cast<const char*>(value.data()), value.size());
  ++count_;
}

void GgufPairs::text(std::string_view key, std::string_view value) {
  std::string out;
  put(out, uint32_t{kString});
  put_string(out, value);
  encoded(key, bytes_of(out));
}

void GgufPairs::u32(std::string_view key, int64_t value) {
  ORTHRUS_CHECK(value >= 0 && value <= UINT32_MAX);
  std::string out;
  put(out, uint32_t{kU32});
  put(out, static_cast<uint32_t>(value));
  encoded(key, bytes_of(out));
}

void GgufPairs::f32(std::string_view key, double value) {
  std::string out;
  put(out, uint32_t{kF32});
  put(out, static_cast<float>(value));
  encoded(key, bytes_of(out));
}

void GgufPairs::f64(std::string_view key, double value) {
  std::string out;
  put(out, uint32_t{kF64});
  put(out, value);
  encoded(key, bytes_of(out));
}

void GgufPairs::boolean(std::string_view key, bool value) {
  std::string out;
  put(out, uint32_t{kBool});
  put(out, static_cast<uint8_t>(value));
  encoded(key, bytes_of(out));
}

void GgufPairs::texts(std::string_view key, std::span<const std::string> values) {
  std::string out;
  put(out, uint32_t{kArray});
  put(out, uint32_t{kString});
  put(out, uint64_t{values.size()});
  for (const std::string& value : values) put_string(out, value);
  encoded(key, bytes_of(out));
}

void GgufPairs::i32s(std::string_view key, std::span<const int32_t> values) {
  std::string out;
  put(out, uint32_t{kArray});
  put(out, uint32_t{kI32});
  put(out, uint64_t{values.size()});
  for (int32_t value : values) put(out, value);
  encoded(key, bytes_of(out));
}

void GgufPairs::f32s(std::string_view key, std::span<const float> values) {
  std::string out;
  put(out, uint32_t{kArray});
  put(out, uint32_t{kF32});
  put(out, uint64_t{values.size()});
  for (float value : values) put(out, value);
  encoded(key, bytes_of(out));
}

bool rope_scaling_is_metadata(const ModelConfig& config) {
  const std::vector<float>& divisors = config.rope.divisors;
  return config.rope.yarn || std::all_of(divisors.begin(), divisors.end(), [&](float divisor) {
           return divisor == divisors.front();
         });
}

namespace {

void write_rope_scaling(const ModelConfig& c, const std::string& architecture, GgufPairs& pairs) {
  const auto key = [&](const char* part) { return architecture + "." + part; };
  const RopeConfig& rope = c.rope;
  if (rope.yarn) {
    const YarnScaling& yarn = *rope.yarn;
    if (!yarn.truncate) fail("{}: yarn with truncate false has no form in GGUF files", c.name);
    pairs.text(key(gguf_key::kRotaryScaling), "yarn");
    pairs.f32(key(gguf_key::kRotaryFactor), yarn.factor);
    pairs.u32(key(gguf_key::kRotaryOriginalContext), yarn.original_context);
    pairs.f32(key(gguf_key::kYarnBetaFast), yarn.beta_fast);
    pairs.f32(key(gguf_key::kYarnBetaSlow), yarn.beta_slow);
    // kYarnAttentionFactor would say it too, but llama.cpp does not heed it.
    const double usual = yarn_attention_factor(yarn.factor);
    if (rope.attention_factor != usual) {
      pairs.f32(key(gguf_key::kRotaryAttentionFactor), rope.attention_factor / usual);
    }
  } else if (!rope.divisors.empty() && rope_scaling_is_metadata(c)) {
    pairs.text(key(gguf_key::kRotaryScaling), "linear");
    pairs.f32(key(gguf_key::kRotaryFactor), static_cast<double>(rope.divisors.front()));
  }
}

}  // namespace

void write_gguf_config(const ModelConfig& c, GgufPairs& pairs) {
  const std::string architecture = architecture_name(c.architecture);
  const auto key = [&](const char* part) { return architecture + "." + part; };
  pairs.text(gguf_key::kArchitecture, architecture);
  pairs.text(gguf_key::kName, c.name);
  pairs.u32(key(gguf_key::kVocabularySize), c.vocab_size);
  pairs.u32(key(gguf_key::kContextLength), c.max_position_embeddings);
  pairs.u32(key(gguf_key::kEmbeddingLength), c.hidden_size);
  pairs.u32(key(gguf_key::kFeedForwardLength), c.intermediate_size);
  pairs.u32(key(gguf_key::kBlockCount), c.num_layers);
  pairs.u32(key(gguf_key::kHeads), c.num_heads);
  pairs.u32(key(gguf_key::kKvHeads), c.num_kv_heads);
  pairs.u32(key(gguf_key::kKeyLength), c.head_dim);
  pairs.u32(key(gguf_key::kValueLength), c.head_dim);
  pairs.u32(key(gguf_key::kRotaryDimensions), c.head_dim);
  pairs.f32(key(gguf_key::kNormEpsilon), c.rms_norm_eps);
  pairs.f32(key(gguf_key::kRotaryBase), c.rope.theta);
  write_rope_scaling(c, architecture, pairs);
  if (!c.sampling.do_sample) return;
  const auto number = [&](const char* name, std::optional<double> value) {
    if (value) pairs.f64(name, *value);
  };
  number(gguf_key::kTemperature, c.sampling.temperature);
  number(gguf_key::kTopP, c.sampling.top_p);
  number(gguf_key::kMinP, c.sampling.min_p);
  number(gguf_key::kRepeatPenalty, c.sampling.repetition_penalty);
  if (c.sampling.top_k) pairs.u32(gguf_key::kTopK, std::min<int64_t>(*c.sampling.top_k, INT32_MAX));
}

GgufWriter::GgufWriter(const std::string& path, const GgufPairs& metadata,
                       const std::vector<GgufEntry>& entries)
    : file_(path) {
  std::string head = "GGUF";
  orthrus::put(head, kVersion);
  orthrus::put(head, uint64_t{entries.size()});
  orthrus::put(head, metadata.count());
  head += metadata.bytes();
  uint64_t offset = 0;
  for (const GgufEntry& entry : entries) {
    put_string(head, entry.name);
    orthrus::put(head, static_cast<uint32_t>(entry.shape.size()));
    for (auto size = entry.shape.rbegin(); size != entry.shape.rend(); ++size) {
      orthrus::put(head, static_cast<uint64_t>(*size));
    }
    orthrus::put(head, entry.type);
    orthrus::put(head, offset);
    offset += aligned(entry.bytes);
    sizes_.push_back(entry.bytes);
  }
  put(bytes_of(head));
  pad();
}

void GgufWriter::put(std::span<const std::byte> bytes) {
  file_.append(bytes);
  written_ += bytes.size();
}

void GgufWriter::pad() {
  static constexpr std::byte kZeros[kAlignment] = {};
  put(std::span(kZeros).first(aligned(written_) - written_));
}

void GgufWriter::append(std::span<const std::byte> bytes) {
  ORTHRUS_CHECK(tensor_ < sizes_.size() && bytes.size() <= sizes_[tensor_] - in_tensor_);
  put(bytes);
  in_tensor_ += bytes.size();
  if (in_tensor_ < sizes_[tensor_]) return;
  pad();
  in_tensor_ = 0;
  ++tensor_;
}

void GgufWriter::commit() {
  ORTHRUS_CHECK(tensor_ == sizes_.size());
  file_.commit();
}

}  // namespace orthrus
