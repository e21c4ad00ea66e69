#include "engine/quantize.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "formats/gguf.h"
#include "formats/gguf_keys.h"
#include "formats/gguf_names.h"
#include "formats/gguf_writer.h"
#include "formats/printable.h"
#include "formats/tensor_layout.h"
#include "formats/tensor_names.h"
#include "model/convert_tensor.h"
#include "model/head_format.h"
#include "text/tokenizer_gguf.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunkBytes = size_t{4} << 20;
constexpr int64_t kQuantizationVersion = 2;  // of ggml's block layouts

TensorType type_of(WeightFormat format) {
  if (format == WeightFormat::kQ4) return TensorType::kQ4_0;
  return format == WeightFormat::kQ8 ? TensorType::kQ8_0 : TensorType::kBF16;
}

/// general.file_type: what most of the weights are.
int64_t file_type(WeightFormat format) {
  if (format == WeightFormat::kQ4) return 2;
  return format == WeightFormat::kQ8 ? 7 : 32;
}

bool is_block_type(TensorType type) { return traits(type).block_elements > 1; }

std::vector<std::string> files_of(const std::string& path) {
  if (!fs::is_directory(path)) return gguf_parts(path);
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path().string());
  return files;
}

/// Of the files beside an adapter: those that belong to one, GGUF files to others.
bool is_part_of_adapter(const std::string& file) { return !file.ends_with(".gguf"); }

/// A mistyped -o must not cost the model that it was to be made of.
void check_output(const std::string& output, const Checkpoint& checkpoint, const Adapter* adapter) {
  if (gguf_parts(output).size() > 1) {
    fail("{}: the name of a part of a split model, but one file is written", output);
  }
  std::error_code ignored;
  if (!fs::exists(output, ignored)) return;
  std::vector<std::string> inputs = files_of(checkpoint.path);
  if (adapter) {
    const std::string folder = fs::path(adapter->path).parent_path().string();
    for (std::string& file : files_of(folder.empty() ? "." : folder)) {
      if (is_part_of_adapter(file)) inputs.push_back(std::move(file));
    }
  }
  for (const std::string& input : inputs) {
    if (fs::equivalent(input, output, ignored)) {
      fail("{}: is a file of the model itself, expected another name for the output", output);
    }
  }
}

/// Metadata of a GGUF source goes over as it is, but for what describes the old file.
bool is_of_old_file(std::string_view key) {
  return key == gguf_key::kFileType || key == gguf_key::kQuantizationVersion ||
         key == gguf_key::kAlignment || key == gguf_key::kBlockSize ||
         key == gguf_key::kMaskToken || key == gguf_key::kBaseHash || key.starts_with("split.") ||
         key.starts_with("quantize.");
}

class Quantizer {
 public:
  Quantizer(const Checkpoint& checkpoint, const QuantizeRequest& request, ThreadPool& pool)
      : checkpoint_(checkpoint),
        config_(checkpoint.config),
        request_(request),
        pool_(pool),
        gguf_(dynamic_cast<const GgufFile*>(checkpoint.tensors.get())) {
    plan_metadata();
    plan_tensors();
    note_losses();
  }

  QuantizeResult write(const std::string& output) {
    GgufWriter writer(output, pairs_, entries_);
    uint64_t total = 0;
    for (const GgufEntry& entry : entries_) total += entry.bytes;
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (!write_tensor(i, writer)) return {true, 0, 0};
      if (request_.progress && total > 0) {
        request_.progress(
            std::min(1.0, static_cast<double>(writer.bytes()) / static_cast<double>(total)));
      }
    }
    writer.commit();
    return {false, static_cast<int64_t>(entries_.size()), writer.bytes()};
  }

 private:
  /// Where an entry's data comes from: converted, or copied where `info` is null.
  struct Step {
    const TensorSource* tensors = nullptr;
    const TensorInfo* info = nullptr;
    TensorType type = TensorType::kF32;
    int interleaved_heads = 0;
    std::span<const std::byte> copy = {};
  };

  bool has_diffusion() const {
    return request_.diffusion && (request_.adapter || config_.is_orthrus);
  }

  void plan_metadata() {
    if (gguf_) {
      const auto& entries = gguf_->metadata().entries();
      for (size_t i = 0; i < entries.size(); ++i) {
        if (is_of_old_file(entries[i].first)) continue;
        pairs_.encoded(entries[i].first, gguf_->metadata().encoded(i));
      }
    } else {
      write_gguf_config(config_, pairs_);
      write_tokenizer_gguf(checkpoint_.path, config_, pairs_);
    }
    pairs_.u32(gguf_key::kFileType, file_type(request_.format));
    pairs_.u32(gguf_key::kQuantizationVersion, kQuantizationVersion);
    pairs_.text(gguf_key::kBaseHash, config_.quantized_from.empty()
                                         ? base_hash(*checkpoint_.tensors)
                                         : config_.quantized_from);
    if (!has_diffusion()) return;
    const Adapter* adapter = request_.adapter;
    const int64_t mask = adapter ? adapter->mask_token_id : config_.mask_token_id;
    pairs_.u32(gguf_key::kBlockSize, adapter ? adapter->block_size : config_.block_size);
    if (mask >= 0) pairs_.u32(gguf_key::kMaskToken, mask);
  }

  void plan_tensors() {
    std::set<std::string> planned;
    for (const TensorSpec& spec : ar_tensors(config_)) {
      plan(*checkpoint_.tensors, spec);
      planned.insert(spec.name);
    }
    plan_rest(planned);
    if (!has_diffusion()) return;
    const TensorSource& view = request_.adapter ? *request_.adapter->tensors : *checkpoint_.tensors;
    for (const TensorSpec& spec : diffusion_tensors(config_)) plan(view, spec);
    if (view.find(kMaskEmbeddingName)) {
      plan(view, {std::string(kMaskEmbeddingName), {config_.hidden_size}});
    }
  }

  /// What a GGUF file has besides stays as it is: the factors of the rotary embedding, and what
  /// other programs may read. Of a directory the factors are in the config.
  void plan_rest(const std::set<std::string>& planned) {
    if (!gguf_) {
      if (rope_scaling_is_metadata(config_)) return;
      const auto factors = std::as_bytes(std::span(config_.rope.divisors));
      const auto count = static_cast<int64_t>(config_.rope.divisors.size());
      add(std::string(kRopeFactorsName), TensorType::kF32, {count}, {.copy = factors});
      return;
    }
    if (!gguf_->unreadable().empty()) {
      const auto& [name, type] = *gguf_->unreadable().begin();
      fail("{}: tensor {} has type {}, which is not supported", gguf_->path(), printable(name),
           type);
    }
    for (const TensorInfo& info : gguf_->tensors()) {
      if (planned.contains(info.name) || is_diffusion_tensor(info.name)) continue;
      add(info.name, info.type, info.shape, {.copy = info.data});
    }
  }

  void plan(const TensorSource& tensors, const TensorSpec& spec) {
    const TensorInfo& info = tensors.require(spec.name, spec.shape);
    const TensorType type = target_type(info);
    const bool converted = info.type != type && is_block_type(info.type);
    if (converted) lossy_.insert(std::string(traits(info.type).name));
    add(spec.name, type, spec.shape,
        {.tensors = &tensors,
         .info = &info,
         .type = type,
         .interleaved_heads = interleaved_heads(spec.name)});
  }

  TensorType target_type(const TensorInfo& info) {
    if (info.shape.size() != 2) return TensorType::kF32;
    const bool head = info.name == kEmbeddingName || info.name == kLmHeadName;
    const TensorType type = type_of(head ? head_format(request_.format) : request_.format);
    if (info.shape[1] % traits(type).block_elements == 0) return type;
    ragged_.push_back(info.name);
    return TensorType::kBF16;
  }

  int interleaved_heads(const std::string& name) const {
    if (config_.architecture != Architecture::kLlama) return 0;
    const RotaryRows rows = rotary_rows(name);
    if (rows == RotaryRows::kNone) return 0;
    return static_cast<int>(rows == RotaryRows::kQuery ? config_.num_heads : config_.num_kv_heads);
  }

  void add(const std::string& hf_name, TensorType type, const std::vector<int64_t>& shape,
           const Step& step) {
    const auto bytes = tensor_bytes(type, shape);
    ORTHRUS_CHECK(bytes.has_value());
    entries_.push_back({ggml_tensor_name(hf_name), ggml_type_number(type), shape, *bytes});
    steps_.push_back(step);
  }

  void note_losses() const {
    if (!lossy_.empty()) {
      spdlog::info("{} holds {} weights: they are read as floats, what they have lost stays lost",
                   checkpoint_.path, fmt::join(lossy_, ", "));
    }
    if (!ragged_.empty()) {
      spdlog::info("{} of the matrices, {} first, have rows that are not whole blocks of 32: bf16",
                   ragged_.size(), ragged_.front());
    }
  }

  bool write_tensor(size_t i, GgufWriter& writer) {
    const Step& step = steps_[i];
    if (!step.info) {
      writer.append(step.copy);
      return true;
    }
    const TensorConverter converter(*step.tensors, *step.info, step.type, step.interleaved_heads);
    const size_t row_bytes = converter.row_bytes();
    const int64_t chunk = std::max<int64_t>(1, static_cast<int64_t>(kChunkBytes / row_bytes));
    for (int64_t row = 0; row < converter.rows(); row += chunk) {
      if (request_.stop.stop_requested()) return false;
      const int64_t rows = std::min(chunk, converter.rows() - row);
      buffer_.resize(static_cast<size_t>(rows) * row_bytes);
      convert(converter, row, rows, step.info->name);
      writer.append(buffer_);
    }
    step.tensors->drop(*step.info);
    return true;
  }

  void convert(const TensorConverter& converter, int64_t row, int64_t rows,
               const std::string& name) {
    try {
      pool_.parallel_for(rows, [&](int64_t begin, int64_t end) {
        std::byte* out = buffer_.data() + static_cast<size_t>(begin) * converter.row_bytes();
        converter.convert(row + begin, row + end, out);
      });
    } catch (const Error& error) {
      fail("{}: tensor {}: {}", checkpoint_.path, name, error.what());
    }
  }

  const Checkpoint& checkpoint_;
  const ModelConfig& config_;
  const QuantizeRequest& request_;
  ThreadPool& pool_;
  const GgufFile* gguf_;  // the source, where it is one
  GgufPairs pairs_;
  std::vector<GgufEntry> entries_;
  std::vector<Step> steps_;  // one an entry
  std::set<std::string> lossy_;
  std::vector<std::string> ragged_;
  std::vector<std::byte> buffer_;
};

}  // namespace

QuantizeResult quantize_model(const Checkpoint& checkpoint, const QuantizeRequest& request,
                              const std::string& output, ThreadPool& pool) {
  check_output(output, checkpoint, request.adapter);
  return Quantizer(checkpoint, request, pool).write(output);
}

}  // namespace orthrus
