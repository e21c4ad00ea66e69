#include "engine/machine_cache.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "engine/model_registry.h"
#include "formats/json.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kProbeSeconds = 0.3;
// 1e9 a second; no machine lies outside.
constexpr double kLeastRate = 1e-3;
constexpr double kMostRate = 1e6;
constexpr size_t kMaxCacheBytes = 1 << 20;
/// Entries kept: enough for every machine that shares a home directory, and no ever-growing file.
constexpr size_t kMaxEntries = 64;

/// Of a thread, about.
constexpr MachineRates kTypicalRates{
    .bytes_per_second = 1e10, .f32_flops = 5e10, .int8_ops = 2e11, .bf16_flops = 5e10};

std::optional<double> rate(const json& entry, const char* name) {
  const auto found = entry.find(name);
  if (found == entry.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return value >= kLeastRate && value <= kMostRate ? std::optional(value) : std::nullopt;
}

bool is_entry_of(const json& entry, const std::string& cpu, const std::string& isa, int threads) {
  return entry.is_object() && entry.value("cpu", json()) == cpu &&
         entry.value("isa", json()) == isa && entry.value("threads", json()) == threads;
}

/// The entries of the file; empty where it is absent or malformed.
json read_entries(const std::string& path) {
  try {
    const json file = read_json_file(path, kMaxCacheBytes);
    if (file.is_object() && file.contains("machines") && file["machines"].is_array()) {
      return file["machines"];
    }
  } catch (const Error&) {
    // Measured anew: a broken cache costs a third of a second.
  }
  return json::array();
}

MachineRates rates_of(const MachineLimits& limits) {
  return {1e9 * limits.read_gbps, 1e9 * limits.fma_gflops, 1e9 * limits.int8_gops,
          1e9 * limits.bf16_gflops};
}

/// What was measured and is not in the file for good: a load asks twice.
class SessionRates {
 public:
  std::optional<MachineRates> find(Isa isa, int threads) const {
    const std::lock_guard lock(mutex_);
    const auto found = rates_.find({isa, threads});
    return found == rates_.end() ? std::nullopt : std::optional(found->second);
  }
  void keep(Isa isa, int threads, const MachineRates& rates) {
    const std::lock_guard lock(mutex_);
    rates_[{isa, threads}] = rates;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<Isa, int>, MachineRates> rates_;
};

/// "" where there is no home directory.
std::string cache_path() {
  try {
    return (fs::path(cached_model_directory("")) / "machine.json").string();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

std::optional<MachineLimits> read_machine_limits(const std::string& path, const std::string& cpu,
                                                 const std::string& isa, int threads) {
  for (const json& entry : read_entries(path)) {
    if (!is_entry_of(entry, cpu, isa, threads)) continue;
    const auto read = rate(entry, "read_gbps");
    const auto fma = rate(entry, "fma_gflops");
    const auto int8 = rate(entry, "int8_gops");
    const auto bf16 = rate(entry, "bf16_gflops");
    if (read && fma && int8 && bf16) {
      const bool disturbed = entry.value("disturbed", json()) == true;
      return MachineLimits{cpu, isa, threads, *read, *fma, *int8, *bf16, disturbed};
    }
  }
  return std::nullopt;
}

bool write_machine_limits(const std::string& path, const MachineLimits& limits) {
  json entries = json::array();
  entries.push_back({{"cpu", limits.cpu},
                     {"isa", limits.isa},
                     {"threads", limits.threads},
                     {"read_gbps", limits.read_gbps},
                     {"fma_gflops", limits.fma_gflops},
                     {"int8_gops", limits.int8_gops},
                     {"bf16_gflops", limits.bf16_gflops},
                     {"disturbed", limits.disturbed}});
  for (json& entry : read_entries(path)) {
    if (entries.size() == kMaxEntries) break;
    if (!is_entry_of(entry, limits.cpu, limits.isa, limits.threads)) {
      entries.push_back(std::move(entry));
    }
  }
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  try {
    write_file_atomically(path, json{{"machines", std::move(entries)}}.dump(
                                    2, ' ', false, json::error_handler_t::replace) +
                                    "\n");
  } catch (const Error&) {
    return false;
  }
  return true;
}

MachineRates machine_rates(const ComputeContext& context) {
  static SessionRates session;
  const std::string path = cache_path();
  const std::string isa(isa_name(context.isa));
  std::optional<MachineLimits> before;
  if (!path.empty()) {
    before = read_machine_limits(path, cpu_name(), isa, context.pool.size());
    if (before && !before->disturbed) return rates_of(*before);
  }
  if (const auto known = session.find(context.isa, context.pool.size())) return *known;
  try {
    MachineLimits limits = measure_machine(context, kProbeSeconds);
    if (before) limits = better(limits, *before);
    const MachineRates rates = rates_of(limits);
    if (path.empty() || !write_machine_limits(path, limits) || limits.disturbed) {
      session.keep(context.isa, context.pool.size(), rates);
    }
    return rates;
  } catch (const Error&) {
    return kTypicalRates;  // no memory to measure in: the passes themselves correct them
  }
}

}  // namespace orthrus
