#include <map>
#include <memory>

#include "base/error.h"
#include "cli/options.h"
#include "engine/model_registry.h"
#include "trainer/cli/commands.h"
#include "trainer/data/make_data.h"

namespace orthrus::train {

Runner add_data_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("data", "the frozen model's own answers to prompts");
  auto options = std::make_shared<MakeDataOptions>();
  MakeDataOptions& o = *options;
  o.generate.program = default_orthrus_program();
  app->add_option("-m,--model", o.generate.model, "a directory, a GGUF file, or a pulled model")
      ->required();
  app->add_option("--prompts", o.prompts,
                  "JSONL as `orthrus generate` takes it, or .txt with a prompt a line");
  app->add_option("--exclude", o.held_out,
                  "held-out prompts: what shares 13 words in a row with one of them is left out");
  app->add_option("--self-prompts", o.self_prompts,
                  "user turns that the model writes by itself; kept are those in ASCII, whatever "
                  "their language")
      ->check(number_in(0, 1e7));
  app->add_option("--self-prompt-start", o.self_prompt_starts,
                  "what those begin with; given several times, they take turns");
  app->add_option("--system-prompt", o.system_prompt, "the system message of texts");
  app->add_option("--limit", o.limit, "prompts of each file, 0: all")->check(number_in(0, 1e9));
  app->add_option("-o,--out", o.out, "folder of the shards")->required();
  app->add_option("--shard-documents", o.shard_documents, "prompts of a shard")
      ->check(number_in(1, 1e6))
      ->capture_default_str();
  app->add_option("-n,--max-tokens", o.generate.batch.max_tokens, "most tokens of an answer")
      ->check(number_in(1, 1e7))
      ->capture_default_str();
  app->add_option("--temp", o.generate.batch.temperature, "0: greedy")
      ->check(number_in(0, 100))
      ->capture_default_str();
  app->add_option("--seed", o.generate.seed, "of the noise")
      ->check(number_in(0, 9.2e18))
      ->capture_default_str();
  app->add_option("--batch", o.generate.batch.rows, "sequences that share passes")
      ->check(number_in(1, 1024))
      ->capture_default_str();
  app->add_option("--backend", o.generate.backend,
                  "engine: `orthrus generate` answers; torch: this program (default: engine, torch "
                  "where the device is not the CPU)")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, Backend>{{"engine", Backend::kEngine}, {"torch", Backend::kTorch}}))
      ->option_text("TEXT:{engine,torch}");
  app->add_option("--device", o.generate.device, "of libtorch: cpu, cuda or cuda:N")
      ->capture_default_str();
  app->add_option("--weights", o.generate.weights,
                  "runtime format of `orthrus`, or f32 or bf16 of libtorch")
      ->capture_default_str();
  app->add_option("--orthrus", o.generate.program, "the program orthrus")->capture_default_str();
  return [options, app] {
    GenerateOptions& generate = options->generate;
    if (generate.device != "cpu") {
      if (app->count("--backend") > 0 && generate.backend == Backend::kEngine) {
        fail_usage("--device {}: the engine runs on the CPU, use --backend torch", generate.device);
      }
      generate.backend = Backend::kTorch;
    }
    generate.model = resolve_model(generate.model).path;
    make_data(*options);
    return 0;
  };
}

}  // namespace orthrus::train
