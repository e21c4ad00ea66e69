#include "trainer/fit/training_state.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "formats/json.h"
#include "formats/safetensors.h"
#include "formats/safetensors_writer.h"

namespace orthrus::train {
namespace {

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".safetensors";
constexpr std::string_view kDamaged = ".damaged";
constexpr size_t kKept = 2;

/// What a folder holds of checkpoint-<digits>.safetensors, or of such names with `more` behind.
/// By step, oldest first. A file of another name is the user's own.
std::vector<std::filesystem::path> checkpoints(const std::string& folder, bool more = false) {
  std::vector<std::pair<uint64_t, std::filesystem::path>> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    uint64_t step = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, problem] = std::from_chars(name.data() + kPrefix.size(), end, step);
    if (problem != std::errc() || !std::string_view(rest, end).starts_with(kSuffix)) continue;
    const std::string_view behind = std::string_view(rest, end).substr(kSuffix.size());
    const bool unfinished =
        behind == kDamaged || (behind.starts_with('.') && behind.ends_with(".tmp"));
    if (more ? unfinished : behind.empty()) found.emplace_back(step, entry.path());
  }
  std::sort(found.begin(), found.end());
  std::vector<std::filesystem::path> paths;
  for (auto& [step, path] : found) paths.push_back(std::move(path));
  return paths;
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
  // Far beyond what a run can reach, and exact as a double.
  constexpr uint64_t kMost = uint64_t{1} << 53;
  const auto count = [&](const char* key) {
    if (!json.is_object() || !json.contains(key) || !json[key].is_number_unsigned() ||
        json[key].get<uint64_t>() > kMost) {
      fail("{}: not a state of training: {} is missing or no count", path, key);
    }
    return json[key].get<int64_t>();
  };
  TrainingState state{count("step"), {count("epoch"), count("next")}, count("tokens"), 0};
  const nlohmann::json bits = json.value("seconds_bits", nlohmann::json());
  if (bits.is_number_unsigned()) state.seconds = std::bit_cast<double>(bits.get<uint64_t>());
  if (!bits.is_number_unsigned() || !(state.seconds >= 0 && state.seconds < 1e15)) {
    fail("{}: not a state of training: seconds_bits is no time", path);
  }
  return state;
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

void load_newest_whole(const std::vector<std::string>& states,
                       const std::function<void(const std::string&)>& load,
                       const std::function<void(const std::string&)>& damaged) {
  ORTHRUS_CHECK(!states.empty());
  for (const std::string& path : states) {
    try {
      return load(path);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kUsage || &path == &states.back()) throw;
      spdlog::warn("{}: the checkpoint before it is taken", error.what());
      if (damaged) damaged(path);
    }
  }
}

void set_state_aside(const std::string& path) {
  std::error_code ignored;
  std::filesystem::rename(path, path + std::string(kDamaged), ignored);
}

void remove_unfinished_states(const std::string& folder) {
  std::error_code ignored;
  for (const std::filesystem::path& path : checkpoints(folder, /*more=*/true)) {
    std::filesystem::remove(path, ignored);
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
  if (!values.isfinite().all().item<bool>()) {
    fail("{}: tensor {} holds numbers that are not finite", source.path(), name);
  }
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
