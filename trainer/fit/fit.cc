#include "trainer/fit/fit.h"

#include <ATen/Parallel.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>

#include "base/atomic_file.h"
#include "base/available_memory.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "cli/terminal.h"
#include "formats/printable.h"
#include "trainer/data/differences.h"
#include "trainer/fit/core_watch.h"
#include "trainer/fit/data_parallel.h"
#include "trainer/fit/flops.h"
#include "trainer/fit/matmul_rate.h"
#include "trainer/fit/memory_prediction.h"
#include "trainer/fit/run_log.h"
#include "trainer/fit/schedule.h"
#include "trainer/fit/settings.h"
#include "trainer/fit/simulate.h"
#include "trainer/fit/start.h"
#include "trainer/fit/stop_signals.h"
#include "trainer/fit/training_state.h"
#include "trainer/model/device.h"

namespace orthrus::train {
namespace {

using Json = nlohmann::ordered_json;

/// cuda without a number: that of the process among those of its machine.
at::Device choose_device(const std::string& name, int local_rank) {
  if (name == "auto" && !at::hasCUDA()) return at::kCPU;
  const at::Device device = parse_device(name == "auto" ? "cuda" : name);
  if (device.is_cpu() || device.has_index()) return device;
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(local_rank));
}

Precision choose_precision(const std::string& name, const at::Device& device) {
  if (name == "auto") {
    return fast_bfloat16(device) ? Precision::kBfloat16 : Precision::kFloat32;
  }
  if (name != "bf16" && name != "f32") fail_usage("precision {}: expected auto, f32 or bf16", name);
  return name == "bf16" ? Precision::kBfloat16 : Precision::kFloat32;
}

/// At most `count` of the documents, from all over the list, so that every kind is among them.
std::vector<Document> spread(const std::vector<Document>& documents, int64_t count) {
  const size_t size = documents.size();
  const size_t taken = std::min(size, static_cast<size_t>(count));
  std::vector<Document> chosen;
  for (size_t i = 0; i < taken; ++i) chosen.push_back(documents[i * size / taken]);
  return chosen;
}

/// Of the first `count` positions of a block: right ones of all, 0 where there are none.
std::vector<double> shares(std::span<const int64_t> right, std::span<const int64_t> all,
                           int64_t count) {
  std::vector<double> result;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const auto rows = static_cast<double>(std::max<int64_t>(1, all[i]));
    result.push_back(static_cast<double>(right[i]) / rows);
  }
  return result;
}

class Run {
 public:
  Run(const FitOptions& options, Start begin, const ProcessGroup& group, at::Device device,
      Precision precision)
      : options_(options),
        group_(group),
        start_(std::move(begin)),
        data_(read_for(options.data)),
        held_out_(read_held_out()),
        memory_(prediction(device, precision)),
        model_(start_tensors(options, start_, device), precision),
        student_(model_, options.student),
        plan_(data_, options.plan),
        settings_(settings_json(options, model_, start_.hash, start_.tokens_before(), data_)) {
    start();
  }

  bool train();

 private:
  Shard read_for(const std::vector<std::string>& paths) const;
  std::vector<Document> read_held_out() const;
  MemoryPrediction prediction(at::Device device, Precision precision) const;
  Json measure_machine();
  void start();
  void open_folder();
  std::string resume_from(const std::vector<std::string>& states);
  bool goes_on(const StopSignals& stop);
  StepStats step();
  void report(const StepStats& stats, double rate_used, double seconds);
  void show(const StepStats& stats, double rate, double flops) const;
  void watch_cores(double flops);
  void say_end() const;
  void evaluate();
  void save();
  [[noreturn]] void stop_at_bad_step(std::span<const PlannedRow> rows, const std::string& what);

  FitOptions options_;
  const ProcessGroup& group_;
  Start start_;
  Shard data_;
  std::vector<Document> held_out_;
  MemoryPrediction memory_;
  DualModel model_;
  Student student_;
  RowPlan plan_;
  Json settings_;
  TrainingState state_;
  std::optional<FolderLock> lock_;
  std::optional<RunLog> log_;
  double gradient_norm_ = 0;
  double step_flops_ = 0;
  double peak_flops_ = 0;  // of this process, a second; 0: not known
  CoreWatch cores_{0, product_waits};
  double shown_ = 0;
  bool stopped_ = false;
  bool ended_ = false;  // already when it was resumed
};

Shard Run::read_for(const std::vector<std::string>& paths) const {
  Shard shard = read_shards(paths);
  if (shard.vocab_size != start_.base.config.vocab_size) {
    fail("{}: made for a vocabulary of {}, the model has {}", paths.front(), shard.vocab_size,
         start_.base.config.vocab_size);
  }
  if (!shard.base_hash.empty() && shard.base_hash != start_.hash) {
    const auto name = shard.provenance.find("model");
    spdlog::warn(
        "{}: its answers were written by {} (hash {}), the model here has hash {}: another model "
        "or another form of it",
        paths.front(), name == shard.provenance.end() ? "another one" : printable(name->second),
        printable(short_hash(shard.base_hash)), short_hash(start_.hash));
  }
  return shard;
}

std::vector<Document> Run::read_held_out() const {
  if (options_.held_out.empty()) return {};
  return spread(read_for(options_.held_out).documents, options_.evaluation_documents);
}

/// Says what the run will take. Error(kInput) where this machine clearly has less: before anything
/// large is allocated.
MemoryPrediction Run::prediction(at::Device device, Precision precision) const {
  int64_t longest = 0;
  for (const Document& d : held_out_) longest = std::max(longest, std::ssize(d.tokens));
  const MemoryQuestion question{.resident = resident_memory(),
                                .file = mapped_memory(*start_.base.tensors),
                                .row = options_.plan,
                                .student = options_.student,
                                .precision = precision,
                                .held_out_tokens = longest};
  const MemoryPrediction result = predict_memory(start_.base.config, question);
  if (!device.is_cpu()) return result;
  if (group_.first()) spdlog::info("{}", result.text());
  constexpr double kClearly = 0.9;
  const int64_t available = available_memory();
  const int64_t wanted = result.total() - question.resident;
  if (available > 0 && static_cast<double>(available) < kClearly * static_cast<double>(wanted)) {
    fail("{}: {} MiB are free, the run takes {} more", options_.model, available >> 20,
         wanted >> 20);
  }
  return result;
}

/// What the log says of the machine.
Json Run::measure_machine() {
  Json facts{{"memory_bytes", memory_.total()}, {"processes", group_.size()}};
  if (!model_.tensors().embedding.is_cpu()) return facts;
  const MatmulRate rate = measure_matmul_rate();
  peak_flops_ = 1e9 * rate.peak_gflops;
  cores_ = CoreWatch(1e9 * rate.gflops, product_waits);
  facts["matmul_gflops"] = rate.gflops;
  facts["fma_gflops"] = rate.peak_gflops;
  if (rate.slow()) {
    spdlog::warn(
        "libtorch multiplies at {:.0f} GFLOP/s, this CPU can {:.0f}: another program is busy, or "
        "the BLAS does not know the CPU (OpenBLAS: set OPENBLAS_CORETYPE, SkylakeX with AVX-512)",
        rate.gflops, rate.peak_gflops);
  }
  return facts;
}

/// The first process opens the folder; the others take from it where the run stands.
void Run::start() {
  if (group_.first()) open_folder();
  std::string settings = settings_.dump();
  group_.broadcast(settings);
  if (!group_.first()) require_same_settings(settings_, settings, "the first process");
  share_state(group_, state_, student_.parameters());
  plan_.restore(state_.plan);
  if (group_.size() > options_.step_rows && group_.first()) {
    spdlog::warn("{} rows a step for {} processes: some have nothing to do", options_.step_rows,
                 group_.size());
  }
}

void Run::open_folder() {
  std::error_code error;
  std::filesystem::create_directories(options_.out, error);
  if (error) fail("{}: cannot be created: {}", options_.out, error.message());
  lock_.emplace(options_.out);
  lock_->require();
  const auto states = saved_states(options_.out);
  if (!states.empty() && !options_.resume) {
    fail_usage("{}: holds a run already: --resume goes on with it", options_.out);
  }
  remove_unfinished_states(options_.out);
  if (states.empty()) {
    if (options_.resume) spdlog::warn("{}: holds no checkpoint, the run begins", options_.out);
    log_.emplace(options_.out, -1);
    log_->write({{"event", "start"}, {"settings", settings_}, {"machine", measure_machine()}});
    return;
  }
  const std::string path = resume_from(states);
  log_.emplace(options_.out, state_.step);
  ended_ = log_->has_ended();
  if (share_done(options_, state_) < 1) {
    spdlog::info("goes on from {}, {}", path, done_text(options_, state_));
  } else {
    spdlog::info(
        "{}: the run is complete{}; to train further begin another one from its export (fit "
        "--adapter, another --out)",
        options_.out, ended_ ? "" : " but for the last evaluation");
  }
  log_->write({{"event", "resume"},
               {"step", state_.step},
               {"settings", settings_},
               {"machine", measure_machine()}});
}

/// From the newest checkpoint that is whole; returns its path.
std::string Run::resume_from(const std::vector<std::string>& states) {
  std::string from;
  const auto load = [&](const std::string& path) {
    require_same_settings(settings_, inspect_state(path).settings, path);
    state_ = load_state(path, student_.parameters()).state;
    plan_.restore(state_.plan);
    from = path;
  };
  load_newest_whole(states, load, set_state_aside);
  return from;
}

void Run::stop_at_bad_step(std::span<const PlannedRow> rows, const std::string& what) {
  if (!group_.first()) fail("step {}: {} is not finite", state_.step + 1, what);
  Json saved = Json::array();
  for (const PlannedRow& row : rows) {
    Json blocks = Json::array();
    for (const TrainBlock& b : row.blocks) {
      blocks.push_back({b.block.anchor, b.block.document, b.targets});
    }
    saved.push_back({{"tokens", row.row.tokens}, {"blocks", blocks}});
  }
  const std::string path = options_.out + "/bad-step.json";
  write_file_atomically(path,
                        Json{{"step", state_.step + 1}, {"what", what}, {"rows", saved}}.dump());
  fail("step {}: {} is not finite: its rows are in {}, the last checkpoint is as it was",
       state_.step + 1, what, path);
}

/// Plans the rows of the whole group, each process works on its part of them.
StepStats Run::step() {
  std::vector<PlannedRow> rows;
  int64_t blocks = 0;
  step_flops_ = 0;
  for (int64_t i = 0; i < options_.step_rows; ++i) {
    rows.push_back(plan_.next());
    step_flops_ += training_flops(model_.config(), rows.back(), options_.student.block_size);
    blocks += static_cast<int64_t>(rows.back().blocks.size());
  }
  StepStats stats;
  stats.agreed.resize(static_cast<size_t>(options_.student.block_size));
  stats.rows.resize(stats.agreed.size());
  std::vector<double> losses(rows.size());
  for (auto i = static_cast<size_t>(group_.rank()); i < rows.size();
       i += static_cast<size_t>(group_.size())) {
    const StepStats part = student_.accumulate(rows[i], 1.0 / static_cast<double>(blocks));
    losses[i] = part.loss;
    stats.add(part);
    if (!std::isfinite(part.loss)) break;
  }
  sum_stats(group_, stats, losses);
  for (const double loss : losses) {
    if (!std::isfinite(loss)) stop_at_bad_step(rows, "the loss");
  }
  sum_gradients(group_, student_.parameters());
  gradient_norm_ = student_.update(learning_rate(options_, state_), state_.step + 1);
  if (!std::isfinite(gradient_norm_)) stop_at_bad_step(rows, "the gradient");
  return stats;
}

void Run::show(const StepStats& stats, double rate, double flops) const {
  std::string speed = fmt::format("{:.0f} tokens/s  {:.1f} GFLOP/s", rate, flops * 1e-9);
  if (peak_flops_ > 0) {
    // No percentage: products in bfloat16 pass that peak.
    speed += fmt::format(" ({:.2f} x the float32 peak)", flops / (peak_flops_ * group_.size()));
  }
  print_stderr(fmt::format("step {}  loss {:.4f}  tokens/cycle {:.2f}  {}  {}, {:.0f} min left\n",
                           state_.step, stats.loss, stats.tokens_per_cycle(), speed,
                           done_text(options_, state_), minutes_left(options_, state_)));
}

/// flops: of this process, in the step just made.
void Run::watch_cores(double flops) {
  const double waits = cores_.after_step(flops, monotonic_seconds());
  if (waits == 0) return;
  const int threads = at::get_num_threads();
  const std::string advice =
      threads > 1
          ? fmt::format(": with fewer threads (-t {}) it may be many times faster", threads - 1)
          : "";
  spdlog::warn(
      "step {} at {:.2f} GFLOP/s: its matrix products take {:.0f} times as long as the fastest, "
      "since another program wants the same cores{}",
      state_.step, flops * 1e-9, waits, advice);
}

/// Two lines: what there is now, and what to do with it.
void Run::say_end() const {
  std::string facts =
      fmt::format("{} after step {} ({}): {} diffusion tokens", stopped_ ? "stopped" : "complete",
                  state_.step, done_text(options_, state_), grouped(state_.tokens));
  const int64_t before = start_.tokens_before();
  if (before > 0) facts += fmt::format(" ({} with its start's)", grouped(before + state_.tokens));
  const double measured = log_->last_evaluation();
  facts += std::isnan(measured)
               ? ", not evaluated"
               : fmt::format(", {:.3f} tokens/cycle at the last evaluation", measured);
  print_stderr(fmt::format("{}; saved: {}\nnext: {}\n", facts, saved_states(options_.out).front(),
                           stopped_ ? "the same command with --resume goes on with it"
                                    : fmt::format("orthrus-train export -m {} --run {} -o "
                                                  "adapter.safetensors",
                                                  options_.model, options_.out)));
}

void Run::report(const StepStats& stats, double rate_used, double seconds) {
  if (!group_.first()) return;
  const double rate = static_cast<double>(stats.tokens) / seconds;
  const int64_t trained = options_.student.block_size - (options_.student.train_last ? 0 : 1);
  log_->write({{"event", "step"},
               {"step", state_.step},
               {"loss", stats.loss},
               {"gradient_norm", gradient_norm_},
               {"learning_rate", rate_used},
               {"tokens_per_cycle", stats.tokens_per_cycle()},
               {"accuracy", shares(stats.agreed, stats.rows, trained)},
               {"tokens", state_.tokens},
               {"tokens_per_second", rate},
               {"flops_per_second", step_flops_ / seconds},
               {"seconds", state_.seconds}});
  watch_cores(step_flops_ / (seconds * group_.size()));
  constexpr double kShowSeconds = 10;
  if (monotonic_seconds() - shown_ < kShowSeconds) return;
  shown_ = monotonic_seconds();
  show(stats, rate, step_flops_ / seconds);
}

void Run::evaluate() {
  if (held_out_.empty() || !group_.first()) return;
  // As `orthrus eval --weights f32` computes, with which it is to agree.
  const Precision precision = model_.precision();
  model_.set_precision(Precision::kFloat32);
  const Simulation s = simulate_cycles(model_, held_out_, options_.student.block_size);
  model_.set_precision(precision);
  print_stderr(fmt::format(
      "step {}: {:.3f} tokens/cycle on {} held-out documents (mean of the documents {:.3f})\n",
      state_.step, s.tokens_per_cycle(), s.documents, s.mean()));
  log_->write({{"event", "evaluation"},
               {"step", state_.step},
               {"tokens", state_.tokens},
               {"seconds", state_.seconds},
               {"documents", s.documents},
               {"cycles", s.cycles},
               {"tokens_per_cycle", s.tokens_per_cycle()},
               {"tokens_per_cycle_mean", s.mean()},
               {"accuracy", shares(s.agreed, s.rows, options_.student.block_size - 1)}});
}

void Run::save() {
  if (!group_.first()) return;
  state_.plan = plan_.state();
  save_state(options_.out, state_, student_.parameters(), settings_.dump());
}

/// The clock is the first process's; a request to stop may come to any.
bool Run::goes_on(const StopSignals& stop) {
  std::vector<double> shared{stop.requested() ? 1.0 : 0.0, group_.first() ? state_.seconds : 0.0};
  group_.sum(shared);
  stopped_ = shared[0] > 0;
  state_.seconds = shared[1];
  return !stopped_ && share_done(options_, state_) < 1;
}

bool Run::train() {
  const StopSignals stop;
  const int64_t first = state_.step;
  if (state_.step == 0) evaluate();
  double saved = monotonic_seconds(), evaluated = monotonic_seconds();
  shown_ = monotonic_seconds();
  while (goes_on(stop)) {
    const double begin = monotonic_seconds();
    const double rate = learning_rate(options_, state_);
    const StepStats stats = step();
    const double seconds = monotonic_seconds() - begin;
    ++state_.step;
    state_.tokens += stats.tokens;
    state_.seconds += seconds;
    report(stats, rate, seconds);
    if (monotonic_seconds() - saved >= 60 * options_.checkpoint_minutes) {
      try {
        save();
      } catch (const Error& error) {
        spdlog::warn("no checkpoint this time: {}", error.what());
      }
      saved = monotonic_seconds();
    }
    if (monotonic_seconds() - evaluated >= 60 * options_.evaluation_minutes) {
      evaluate();
      evaluated = monotonic_seconds();
    }
  }
  save();
  if (stopped_) {
    if (group_.first()) say_end();
    return false;
  }
  const bool ended_before = state_.step == first && ended_;  // a finished run that was resumed
  if (!ended_before) evaluate();
  if (!group_.first()) return true;
  if (!ended_before) {
    log_->write({{"event", "end"}, {"step", state_.step}, {"memory_peak_bytes", peak_memory()}});
  }
  say_end();
  return true;
}

}  // namespace

bool fit(const FitOptions& given) {
  FitOptions options = given;
  Start start = open_start(options);
  if (options.student.block_size == 0) options.student.block_size = start.block_size();
  if (options.student.block_size < 2) {
    fail_usage("a block of {} rows: expected 2 or more", options.student.block_size);
  }
  options.plan.block_size = options.student.block_size;
  options.plan.train_last = options.student.train_last;
  const WorldPlace place = world_from_environment();
  const at::Device device = choose_device(options.device, place.local_rank);
  const c10::OptionalDeviceGuard guard(device);
  const ProcessGroup group(place, device,
                           std::chrono::milliseconds(std::llround(options.peer_minutes * 60'000)));
  const Precision precision = choose_precision(options.precision, device);
  return Run(options, std::move(start), group, device, precision).train();
}

}  // namespace orthrus::train
