#include "trainer/fit/start.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/log.h"
#include "formats/printable.h"
#include "formats/safetensors.h"
#include "trainer/data/differences.h"

namespace orthrus::train {
namespace {

/// "Qwen3 0.6B (hash 0123456789ab)"; an adapter names its base only where an export wrote that.
std::string base_text(const std::string& name, const std::string& hash) {
  return fmt::format("{} (hash {})", name.empty() ? "a base" : printable(name),
                     printable(short_hash(hash)));
}

std::string base_name(const std::map<std::string, std::string>& metadata) {
  const auto name = metadata.find("base_model");
  return name == metadata.end() ? "" : name->second;
}

/// Where the adapter itself says that it belongs to another base, that is the reason why its
/// tensors do not fit: Error(kInput) says so.
void refuse_other_base(const std::string& given, const Start& start) {
  std::error_code ignored;
  const std::string path =
      std::filesystem::is_directory(given, ignored) ? adapter_in(given) : given;
  if (path.empty()) return;
  const std::map<std::string, std::string> metadata = SafetensorsSource(path).metadata();
  const auto hash = metadata.find("base_hash");
  if (hash == metadata.end() || hash->second == start.hash) return;
  fail("{}: trained on another base: expected {}, found {} in {}", path,
       base_text(base_name(metadata), hash->second), base_text(start.base.config.name, start.hash),
       start.base.path);
}

Adapter open_fitting_adapter(const std::string& path, const Start& start) {
  try {
    return open_adapter(path, start.base.config);
  } catch (const Error&) {
    refuse_other_base(path, start);
    throw;
  }
}

}  // namespace

int64_t Start::block_size() const {
  constexpr int64_t kForCopies = 8;
  if (source == DiffusionSource::kCopy) return kForCopies;
  return adapter ? adapter->block_size : base.config.block_size;
}

int64_t Start::tokens_before() const {
  if (!adapter || !adapter->metadata.contains("training_tokens")) return 0;
  const std::string& text = adapter->metadata.at("training_tokens");
  int64_t tokens = 0;
  std::from_chars(text.data(), text.data() + text.size(), tokens);
  return std::max<int64_t>(tokens, 0);
}

Start open_start(const FitOptions& o) {
  Start start{open_checkpoint(o.model), "", DiffusionSource::kCopy, std::nullopt};
  start.hash = base_hash(*start.base.tensors);
  if (o.adapter.empty() && start.base.config.is_orthrus) {
    start.source = DiffusionSource::kCheckpoint;
  } else if (!o.adapter.empty() && o.adapter != "copy") {
    start.source = DiffusionSource::kAdapter;
    start.adapter = open_fitting_adapter(o.adapter, start);
    const Adapter& adapter = *start.adapter;
    if (!adapter.base_hash.empty() && adapter.base_hash != start.hash) {
      spdlog::warn("{}: trained on {}, here is {}: another model or another form of it", o.adapter,
                   base_text(base_name(adapter.metadata), adapter.base_hash),
                   base_text(start.base.config.name, start.hash));
    }
  }
  return start;
}

ModelTensors start_tensors(const FitOptions& o, const Start& start, at::Device device) {
  ModelTensors tensors =
      load_tensors(start.base, start.source, start.adapter ? &*start.adapter : nullptr);
  tensors.config.block_size = o.student.block_size;
  if (o.mask_token >= 0) {
    if (o.mask_token >= tensors.config.vocab_size) {
      fail_usage("mask token {}: the vocabulary has {}", o.mask_token, tensors.config.vocab_size);
    }
    tensors.config.mask_token_id = o.mask_token;
    tensors.mask = tensors.embedding[o.mask_token].clone();
  }
  tensors.to(device);
  return tensors;
}

}  // namespace orthrus::train
