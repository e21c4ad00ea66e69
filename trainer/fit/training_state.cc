#include "trainer/fit/training_state.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"

namespace orthrus::train {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr size_t kKept = 2;

/// Complete checkpoints, oldest first: their steps are written with leading zeros.
std::vector<std::filesystem::path> checkpoints(const std::string& folder) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kPrefix) && name.ends_with(kSuffix)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string value_name(const Parameter& p) { return "value." + p.name; }

/// The tensors of a parameter by their names in the file.
template <typename Visit>
void visit(const Parameter& p, const Visit& visitor) {
  visitor(value_name(p), p.value);
  visitor("mean." + p.name, p.mean);
  if (p.square.defined()) visitor("square." + p.name, p.square);
}

std::string describe(const TrainingState& s) {
  // Seconds as bits, so that a time-based schedule goes on exactly where it stood.
  return nlohmann::json{{"step", s.step},
                        {"epoch", s.plan.epoch},
                        {"next", s.plan.next},
                        {"tokens", s.tokens},
                        {"seconds_bits", std::bit_cast<uint64_t>(s.seconds)}}
      .dump();
}

TrainingState parse_state(const std::string& text, const std::string& path) {
  const nlohmann::json json = parse_json(text, path);
  try {
    return {json.at("step"),
            {json.at("epoch"), json.at("next")},
            json.at("tokens"),
            std::bit_cast<double>(json.at("seconds_bits").get<uint64_t>())};
  } catch (const nlohmann::json::exception& error) {
    fail("{}: not a state of training: {}", path, printable(error.what()));
  }
}

}  // namespace

void save_state(const std::string& folder, const TrainingState& state,
                const std::vector<Parameter>& parameters, const std::string& settings) {
  std::vector<SafetensorsEntry> entries;
  for (const Parameter& p : parameters) {
    visit(p, [&](const std::string& name, const at::Tensor& t) {
      entries.push_back({name, TensorType::kF32, t.sizes().vec()});
    });
  }
  const std::string path = fmt::format("{}/{}{:08}{}", folder, kPrefix, state.step, kSuffix);
  SafetensorsWriter writer(path, entries, {{"state", describe(state)}, {"settings", settings}});
  for (const Parameter& p : parameters) {
    visit(p, [&](const std::string&, const at::Tensor& t) {
      const at::Tensor values = t.detach().to(at::kCPU).contiguous();
      writer.append({static_cast<const std::byte*>(values.data_ptr()), values.nbytes()});
    });
  }
  writer.commit();
  const auto all = checkpoints(folder);
  std::error_code ignored;
  for (size_t i = 0; i + kKept < all.size(); ++i) std::filesystem::remove(all[i], ignored);
}

std::vector<std::string> saved_states(const std::string& folder) {
  std::vector<std::string> newest_first;
  for (const std::filesystem::path& path : checkpoints(folder)) newest_first.push_back(path);
  std::reverse(newest_first.begin(), newest_first.end());
  return newest_first;
}

void remove_unfinished_states(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const size_t end = name.find(kSuffix);
    // The writer's temporary names go on behind the suffix.
    if (name.starts_with(kPrefix) && end != std::string::npos && end + kSuffix.size() < name.size())
      std::filesystem::remove(entry.path(), ignored);
  }
}

LoadedState inspect_state(const std::string& path) {
  const SafetensorsSource source(path);
  const auto metadata = [&](const char* key) {
    const auto at = source.metadata().find(key);
    if (at == source.metadata().end()) fail("{}: no metadata {}", path, key);
    return at->second;
  };
  return {parse_state(metadata("state"), path), metadata("settings")};
}

namespace {

void copy_tensor(const SafetensorsSource& source, const std::string& name, const at::Tensor& to) {
  const TensorInfo& info = source.require(name, to.sizes().vec());
  if (info.type != TensorType::kF32) {
    fail("{}: tensor {} has type {}, expected F32", source.path(), name, traits(info.type).name);
  }
  const at::Tensor values = at::empty(to.sizes(), at::kFloat);
  std::memcpy(values.data_ptr(), info.data.data(), info.data.size());
  to.detach().copy_(values);
}

}  // namespace

LoadedState load_state(const std::string& path, std::vector<Parameter>& parameters) {
  const at::NoGradGuard no_grad;
  const LoadedState loaded = inspect_state(path);
  const SafetensorsSource source(path);
  for (Parameter& p : parameters) {
    visit(p, [&](const std::string& name, const at::Tensor& t) { copy_tensor(source, name, t); });
  }
  return loaded;
}

LoadedState load_parameters(const std::string& path, std::vector<Parameter>& parameters) {
  const at::NoGradGuard no_grad;
  const LoadedState loaded = inspect_state(path);
  const SafetensorsSource source(path);
  for (Parameter& p : parameters) copy_tensor(source, value_name(p), p.value);
  return loaded;
}

}  // namespace orthrus::train
