#include <map>
#include <memory>

#include "cli/options.h"
#include "engine/model_registry.h"
#include "trainer/cli/commands.h"
#include "trainer/fit/fit.h"

namespace orthrus::train {
namespace {

void add_model_flags(CLI::App& app, FitOptions& o) {
  app.add_option("-m,--model", o.model, "base model: a directory, a GGUF file, or a pulled model")
      ->required();
  app.add_option("--adapter", o.adapter,
                 "begin with these diffusion weights, or \"copy\" (default: the checkpoint's own, "
                 "else copies)");
  app.add_option("--data", o.data, "shards, or folders of them")->required();
  app.add_option("--held-out", o.held_out, "shards to evaluate on");
  app.add_option("-o,--out", o.out, "folder of checkpoints and the log")->required();
  app.add_flag("--resume", o.resume, "go on from the newest checkpoint there");
  app.add_option("--precision", o.precision,
                 "of matrix products: f32, bf16, or auto: bf16 where that is faster")
      ->check(CLI::IsMember({"auto", "f32", "bf16"}))
      ->capture_default_str();
  app.add_option("--device", o.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  app.add_option("--peer-minutes", o.peer_minutes, "how long a process waits for another one")
      ->check(number_in(0.01, 1e5))
      ->capture_default_str();
  o.student.block_size = 0;
  app.add_option("--block", o.student.block_size,
                 "rows of a block, the anchor included; 0: as the start was trained, 8 for copies")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--mask-token", o.mask_token,
                 "a vocabulary row as the mask (default: a trained embedding)")
      ->check(number_in(0, 1e9));
}

void add_loss_flags(CLI::App& app, FitOptions& o) {
  app.add_flag("--train-last", o.student.train_last,
               "train the last row of a block too, which one-pass cycles use");
  app.add_option("--position-decay", o.student.position_decay,
                 "row i of a block weighs exp(-i / this); 0: all alike")
      ->check(number_in(0, 1e6))
      ->capture_default_str();
  app.add_option("--temperature", o.student.loss.temperature, "of both views in the loss")
      ->check(number_in(0.01, 100))
      ->capture_default_str();
  app.add_option("--cross-entropy", o.student.loss.cross_entropy,
                 "share of the cross-entropy in the loss, the rest is KL")
      ->check(number_in(0, 1))
      ->capture_default_str();
}

void add_schedule_flags(CLI::App& app, FitOptions& o) {
  app.add_option("--steps", o.steps, "length of the run in steps (exact when resumed)")
      ->check(number_in(0, 1e12));
  app.add_option("--minutes", o.minutes, "length of the run where --steps is not given")
      ->check(number_in(1e-3, 1e7))
      ->capture_default_str();
  app.add_option("--row-tokens", o.plan.row_tokens, "tokens of a packed row")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_option("--row-blocks", o.plan.row_blocks, "blocks of a row, at most")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--step-rows", o.step_rows, "rows of a step, of all processes together")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--lr", o.learning_rate, "highest learning rate; falls to a tenth in a cosine")
      ->check(number_in(1e-12, 1e3))
      ->capture_default_str();
  app.add_option("--warmup", o.warmup_steps, "steps until it is reached")
      ->check(number_in(0, 1e12))
      ->capture_default_str();
  app.add_option("--optimizer", o.student.optimizer,
                 "adamw, or muon for the projections (adamw for the rest)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, Optimizer>{
          {"adamw", Optimizer::kAdamW}, {"muon", Optimizer::kMuon}}))
      ->option_text("TEXT:{adamw,muon}=adamw");
  app.add_option("--weight-decay", o.student.adamw.weight_decay, "of AdamW")
      ->check(number_in(0, 1e3))
      ->capture_default_str();
  app.add_option("--clip", o.student.clip, "largest norm of the gradient; 0: no limit")
      ->check(number_in(0, 1e9))
      ->capture_default_str();
  app.add_option("--seed", o.plan.seed, "of the order of rows and the anchors")
      ->check(number_in(0, 9.2e18))
      ->capture_default_str();
  app.add_option("--checkpoint-minutes", o.checkpoint_minutes, "between checkpoints")
      ->check(number_in(0, 1e7))
      ->capture_default_str();
  app.add_option("--eval-minutes", o.evaluation_minutes, "between held-out evaluations")
      ->check(number_in(0, 1e7))
      ->capture_default_str();
  app.add_option("--eval-documents", o.evaluation_documents, "held-out documents used, at most")
      ->check(number_in(1, 1e9))
      ->capture_default_str();
}

}  // namespace

Runner add_fit_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("fit", "train a diffusion view beside a frozen model");
  auto options = std::make_shared<FitOptions>();
  add_model_flags(*app, *options);
  add_loss_flags(*app, *options);
  add_schedule_flags(*app, *options);
  return [options] {
    options->student.muon.weight_decay = options->student.adamw.weight_decay;
    options->model = resolve_model(options->model).path;
    constexpr int kStopped = 130;  // as a shell says of a program that Ctrl-C has ended
    return fit(*options) ? 0 : kStopped;
  };
}

}  // namespace orthrus::train
