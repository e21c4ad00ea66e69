// A file of --config, YAML or JSON, for the flags of `orthrus run`.
#include <spdlog/spdlog.h>

#include "cli/config_file.h"
#include "cli/options.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  static const std::vector<std::string> kOtherFlags = {"budget", "reps", "batch"};
  spdlog::set_level(spdlog::level::off);  // of the notice of keys without effect
  CLI::App app;
  ModelFlags model;
  PromptFlags prompt;
  GenerationFlags generation;
  add_model_flags(app, model);
  add_template_flags(app, prompt);
  add_generation_flags(app, generation);
  app.parse(std::vector<std::string>{});
  return fuzz::run_parser(
      [&] { apply_config(fuzz::as_text(data, size), "input", app, kOtherFlags); });
}
