#include <fmt/format.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "engine/model_registry.h"
#include "trainer/cli/commands.h"
#include "trainer/export/export_view.h"

namespace orthrus::train {

Runner add_export_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand("export", "write a run's diffusion view for orthrus");
  auto options = std::make_shared<ExportOptions>();
  app->add_option("-m,--model", options->model, "the base model of the run")->required();
  app->add_option("--run", options->run, "folder of fit, or one of its checkpoints")->required();
  app->add_option("-o,--out", options->out,
                  "adapter file, or the folder of its parts or of the checkpoint")
      ->required();
  app->add_option("--type", options->form,
                  "bf16 or int8: an adapter; checkpoint: a whole model in the official layout")
      ->transform(CLI::CheckedTransformer(
          std::map<std::string, ExportForm>{{"bf16", ExportForm::kBf16},
                                            {"int8", ExportForm::kInt8},
                                            {"checkpoint", ExportForm::kCheckpoint}}))
      ->option_text("TEXT:{bf16,int8,checkpoint}=bf16");
  app->add_option("--part-bytes", options->part_bytes,
                  "write an adapter in parts of at most so many bytes (16MiB, say) and their index")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false))
      ->check(number_in(1, 1e18));  // of the bytes that the transformation leaves
  auto metadata = std::make_shared<std::vector<std::string>>();
  app->add_option("--metadata", *metadata,
                  "KEY=VALUE for the adapter's metadata, license=apache-2.0 say; may be repeated");
  return [options, metadata] {
    for (const std::string& entry : *metadata) {
      const size_t equals = entry.find('=');
      if (equals == std::string::npos || equals == 0) {
        fail_usage("--metadata {}: expected KEY=VALUE", entry);
      }
      const std::string key = entry.substr(0, equals);
      if (!options->metadata.emplace(key, entry.substr(equals + 1)).second) {
        fail_usage("--metadata: {} is there twice", key);
      }
    }
    if (options->part_bytes > 0 && options->form == ExportForm::kCheckpoint) {
      fail_usage("--part-bytes is for adapters");
    }
    options->model = resolve_model(options->model).path;
    const Exported done = export_view(*options);
    print(fmt::format("{}: {}, {} ({})\n", done.path, done.form,
                      human_bytes(static_cast<double>(done.bytes)), done.origin));
    return 0;
  };
}

}  // namespace orthrus::train
