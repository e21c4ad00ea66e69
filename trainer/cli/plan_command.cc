#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "engine/shapes.h"
#include "formats/checkpoint.h"
#include "trainer/cli/commands.h"
#include "trainer/fit/flops.h"
#include "trainer/fit/memory_prediction.h"

namespace orthrus::train {
namespace {

struct PlanOptions {
  std::string model, shape, precision = "bf16";
  MemoryQuestion memory;
  double tokens = 3e6;
  double gflops = 0;
};

void print_plan(const PlanOptions& o, const ModelConfig& config) {
  const PlannedRow row = full_row(o.memory.row);
  const auto rows =
      static_cast<double>(row.blocks.size()) * static_cast<double>(o.memory.row.block_size);
  const double flops = training_flops(config, row, o.memory.row.block_size) / rows;
  std::string text = fmt::format(
      "{}: {} diffusion tokens a row of {} tokens, {:.2f} GFLOP a diffusion token\n{}\n",
      config.name, rows, o.memory.row.row_tokens, flops / 1e9,
      predict_memory(config, o.memory).text());
  if (o.gflops > 0) {
    text += fmt::format("{:.0f} diffusion tokens at {:.0f} GFLOP/s: {:.2f} hours\n", o.tokens,
                        o.gflops, o.tokens * flops / (1e9 * o.gflops) / 3600);
  }
  print(text);
}

}  // namespace

Runner add_plan_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("plan", "time and memory of a run, without running it");
  auto options = std::make_shared<PlanOptions>();
  PlanOptions& o = *options;
  auto* model = app->add_option("-m,--model", o.model,
                                "base model: a directory, a GGUF file, or a pulled model");
  app->add_option("--shape", o.shape, "instead: a model in the shape of " + shape_names())
      ->excludes(model);
  app->add_option("--precision", o.precision, "of matrix products")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  app->add_option("--block", o.memory.row.block_size, "rows of a block, the anchor included")
      ->check(CLI::Range(2, 1024))
      ->capture_default_str();
  app->add_option("--row-tokens", o.memory.row.row_tokens, "tokens of a packed row")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app->add_option("--row-blocks", o.memory.row.row_blocks, "blocks of a row, at most")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app->add_option("--tokens", o.tokens, "diffusion tokens of the run")
      ->check(number_in(1, 1e18))
      ->capture_default_str();
  app->add_option("--gflops", o.gflops, "operations a second in 1e9: prints the time")
      ->check(number_in(0, 1e15));
  return [options] {
    PlanOptions& plan = *options;
    if (plan.model.empty() && plan.shape.empty()) {
      fail_usage("no model: --model or --shape names one");
    }
    const ModelConfig config = plan.shape.empty()
                                   ? open_checkpoint(resolve_model(plan.model).path).config
                                   : named_shape(plan.shape);
    plan.memory.student.block_size = plan.memory.row.block_size;
    plan.memory.precision = plan.precision == "bf16" ? Precision::kBfloat16 : Precision::kFloat32;
    plan.memory.resident = resident_memory();
    if (plan.memory.row.row_tokens < plan.memory.row.block_size) {
      fail_usage("--row-tokens {}: fewer than a block's {}", plan.memory.row.row_tokens,
                 plan.memory.row.block_size);
    }
    print_plan(plan, config);
    return 0;
  };
}

}  // namespace orthrus::train
