#include "trainer/fit/fit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/json.h"
#include "trainer/fit/run_log.h"
#include "trainer/fit/simulate.h"
#include "trainer/fit/stop_signals.h"
#include "trainer/fit/training_state.h"

namespace orthrus::train {
namespace {

using Json = nlohmann::ordered_json;

double now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

/// All that the curve depends on.
Json settings_json(const FitOptions& o, const ModelConfig& config, const std::string& base_hash,
                   const Shard& data) {
  return {{"base_hash", base_hash},
          {"documents", data.documents.size()},
          {"answer_tokens", answer_tokens(data)},
          {"adapter", o.adapter},
          {"mask_token_id", config.mask_token_id},
          {"block_size", o.student.block_size},
          {"train_last", o.student.train_last},
          {"position_decay", o.student.position_decay},
          {"temperature", o.student.loss.temperature},
          {"cross_entropy", o.student.loss.cross_entropy},
          {"row_tokens", o.plan.row_tokens},
          {"row_blocks", o.plan.row_blocks},
          {"step_rows", o.step_rows},
          {"seed", o.plan.seed},
          {"learning_rate", o.learning_rate},
          {"warmup_steps", o.warmup_steps},
          {"beta1", o.student.adamw.beta1},
          {"beta2", o.student.adamw.beta2},
          {"weight_decay", o.student.adamw.weight_decay},
          {"clip", o.student.clip},
          {"steps", o.steps},
          {"minutes", o.steps > 0 ? 0.0 : o.minutes}};
}

void require_same(const Json& ours, const std::string& text, const std::string& path) {
  const nlohmann::json theirs = parse_json(text, path);
  for (const auto& [key, value] : ours.items()) {
    if (!theirs.contains(key) || theirs[key] != nlohmann::json(value)) {
      fail_usage("{}: the run was begun with {} = {}, now it is {}", path, key,
                 theirs.contains(key) ? theirs[key].dump() : "nothing", value.dump());
    }
  }
}

ModelTensors start_tensors(const FitOptions& o, const Checkpoint& checkpoint) {
  ModelTensors tensors;
  if (o.adapter == "copy") {
    tensors = load_tensors(checkpoint, DiffusionSource::kCopy);
  } else if (!o.adapter.empty()) {
    const Adapter adapter = open_adapter(o.adapter, checkpoint.config);
    tensors = load_tensors(checkpoint, DiffusionSource::kAdapter, &adapter);
  } else {
    tensors = load_tensors(checkpoint, checkpoint.config.is_orthrus ? DiffusionSource::kCheckpoint
                                                                    : DiffusionSource::kCopy);
  }
  tensors.config.block_size = o.student.block_size;
  if (o.mask_token >= 0) {
    if (o.mask_token >= tensors.config.vocab_size) {
      fail_usage("mask token {}: the vocabulary has {}", o.mask_token, tensors.config.vocab_size);
    }
    tensors.config.mask_token_id = o.mask_token;
    tensors.mask = tensors.embedding[o.mask_token].clone();
  }
  return tensors;
}

class Run {
 public:
  explicit Run(const FitOptions& options)
      : options_(options),
        checkpoint_(open_checkpoint(options.model)),
        data_(read_for(options.data)),
        model_(start_tensors(options, checkpoint_)),
        student_(model_, options.student),
        plan_(data_, options.plan),
        settings_(settings_json(options, model_.config(), base_hash(*checkpoint_.tensors), data_)) {
    if (!options.held_out.empty()) held_out_ = read_for(options.held_out).documents;
    const auto most = static_cast<size_t>(options.evaluation_documents);
    if (held_out_.size() > most) held_out_.resize(most);
    open_folder();
  }

  bool train();

 private:
  Shard read_for(const std::vector<std::string>& paths) const;
  void open_folder();
  double share_done() const;
  double learning_rate() const;
  StepStats step();
  void report(const StepStats& stats, double norm, double seconds);
  void show(const StepStats& stats, double rate) const;
  void evaluate();
  void save();
  [[noreturn]] void stop_at_bad_row(const PlannedRow& row, const std::string& what);

  FitOptions options_;
  Checkpoint checkpoint_;
  Shard data_;
  std::vector<Document> held_out_;
  DualModel model_;
  Student student_;
  RowPlan plan_;
  Json settings_;
  TrainingState state_;
  std::optional<RunLog> log_;
  double gradient_norm_ = 0;
  double shown_ = 0;
};

Shard Run::read_for(const std::vector<std::string>& paths) const {
  Shard shard = read_shards(paths);
  if (shard.vocab_size != checkpoint_.config.vocab_size) {
    fail("{}: made for a vocabulary of {}, the model has {}", paths.front(), shard.vocab_size,
         checkpoint_.config.vocab_size);
  }
  if (!shard.base_hash.empty() && shard.base_hash != base_hash(*checkpoint_.tensors)) {
    spdlog::warn("{}: its answers were written by another model or another form of it",
                 paths.front());
  }
  return shard;
}

void Run::open_folder() {
  std::error_code error;
  std::filesystem::create_directories(options_.out, error);
  if (error) fail("{}: cannot be created: {}", options_.out, error.message());
  const auto latest = latest_state(options_.out);
  if (latest && !options_.resume) {
    fail_usage("{}: holds a run already: --resume goes on with it", options_.out);
  }
  if (!latest) {
    log_.emplace(options_.out, -1);
    log_->write({{"event", "start"}, {"settings", settings_}});
    return;
  }
  const LoadedState loaded = load_state(*latest, student_.parameters());
  require_same(settings_, loaded.settings, *latest);
  state_ = loaded.state;
  plan_.restore(state_.plan);
  log_.emplace(options_.out, state_.step);
  spdlog::info("goes on from {}", *latest);
}

double Run::share_done() const {
  if (options_.steps > 0) {
    return static_cast<double>(state_.step) / static_cast<double>(options_.steps);
  }
  return state_.seconds / (60 * options_.minutes);
}

/// Linear warm-up, then half a cosine down to a tenth.
double Run::learning_rate() const {
  const double warm =
      std::min(1.0, static_cast<double>(state_.step + 1) /
                        static_cast<double>(std::max<int64_t>(1, options_.warmup_steps)));
  const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * std::min(1.0, share_done())));
  return options_.learning_rate * warm * (0.1 + 0.9 * cosine);
}

void Run::stop_at_bad_row(const PlannedRow& row, const std::string& what) {
  Json blocks = Json::array();
  for (const TrainBlock& b : row.blocks) {
    blocks.push_back({b.block.anchor, b.block.document, b.targets});
  }
  const std::string path = options_.out + "/bad-step.json";
  write_file_atomically(
      path,
      Json{
          {"step", state_.step + 1}, {"what", what}, {"tokens", row.row.tokens}, {"blocks", blocks}}
          .dump());
  fail("step {}: {} is not finite: its row is in {}, the last checkpoint is as it was",
       state_.step + 1, what, path);
}

StepStats Run::step() {
  std::vector<PlannedRow> rows;
  int64_t blocks = 0;
  for (int64_t i = 0; i < options_.step_rows; ++i) {
    rows.push_back(plan_.next());
    blocks += static_cast<int64_t>(rows.back().blocks.size());
  }
  StepStats stats;
  for (const PlannedRow& row : rows) {
    const StepStats part = student_.accumulate(row, 1.0 / static_cast<double>(blocks));
    if (!std::isfinite(part.loss)) stop_at_bad_row(row, "the loss");
    stats.add(part);
  }
  gradient_norm_ = student_.update(learning_rate(), state_.step + 1);
  if (!std::isfinite(gradient_norm_)) stop_at_bad_row(rows.back(), "the gradient");
  return stats;
}

void Run::show(const StepStats& stats, double rate) const {
  const double done = share_done();
  const double left = done > 0 ? std::max(0.0, state_.seconds * (1 - done) / done) : 0;
  fmt::print(
      stderr,
      "step {}  loss {:.4f}  tokens/cycle {:.2f}  {:.0f} tokens/s  {:.0f} %  {:.0f} min left\n",
      state_.step, stats.loss, stats.tokens_per_cycle(), rate, 100 * done, left / 60);
}

void Run::report(const StepStats& stats, double rate_used, double seconds) {
  const double rate = static_cast<double>(stats.tokens) / seconds;
  log_->write({{"event", "step"},
               {"step", state_.step},
               {"loss", stats.loss},
               {"gradient_norm", gradient_norm_},
               {"learning_rate", rate_used},
               {"tokens_per_cycle", stats.tokens_per_cycle()},
               {"tokens", state_.tokens},
               {"tokens_per_second", rate},
               {"seconds", state_.seconds}});
  constexpr double kShowSeconds = 10;
  if (now() - shown_ < kShowSeconds) return;
  shown_ = now();
  show(stats, rate);
}

void Run::evaluate() {
  if (held_out_.empty()) return;
  const Simulation s =
      simulate_cycles(model_, held_out_, options_.student.block_size, options_.plan.row_tokens);
  std::vector<double> accuracy;
  for (size_t i = 0; i < s.rows.size(); ++i) {
    accuracy.push_back(static_cast<double>(s.agreed[i]) /
                       static_cast<double>(std::max<int64_t>(1, s.rows[i])));
  }
  fmt::print(stderr, "step {}: {:.3f} tokens/cycle on {} held-out documents (mean {:.3f})\n",
             state_.step, s.tokens_per_cycle(), s.documents, s.mean());
  log_->write({{"event", "evaluation"},
               {"step", state_.step},
               {"tokens", state_.tokens},
               {"seconds", state_.seconds},
               {"documents", s.documents},
               {"cycles", s.cycles},
               {"tokens_per_cycle", s.tokens_per_cycle()},
               {"tokens_per_cycle_mean", s.mean()},
               {"accuracy", accuracy}});
}

void Run::save() {
  state_.plan = plan_.state();
  save_state(options_.out, state_, student_.parameters(), settings_.dump());
}

bool Run::train() {
  const StopSignals stop;
  if (state_.step == 0) evaluate();
  double saved = now(), evaluated = now();
  shown_ = now();
  while (share_done() < 1 && !stop.requested()) {
    const double begin = now();
    const double rate = learning_rate();
    const StepStats stats = step();
    const double seconds = now() - begin;
    ++state_.step;
    state_.tokens += stats.tokens;
    state_.seconds += seconds;
    report(stats, rate, seconds);
    if (now() - saved >= 60 * options_.checkpoint_minutes) {
      try {
        save();
      } catch (const Error& error) {
        spdlog::warn("no checkpoint this time: {}", error.what());
      }
      saved = now();
    }
    if (now() - evaluated >= 60 * options_.evaluation_minutes) {
      evaluate();
      evaluated = now();
    }
  }
  save();
  if (stop.requested()) {
    spdlog::info("stopped after step {}, saved: --resume goes on with it", state_.step);
    return false;
  }
  evaluate();
  return true;
}

}  // namespace

bool fit(const FitOptions& options) {
  Run run(options);
  return run.train();
}

}  // namespace orthrus::train
