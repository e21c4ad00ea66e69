#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/atomic_file.h"
#include "base/error.h"
#include "cli/options.h"
#include "cli/terminal.h"
#include "trainer/cli/commands.h"
#include "trainer/plot/report.h"

namespace orthrus::train {

Runner add_plot_command(CLI::App& program) {
  CLI::App* app = program.add_subcommand(
      "plot", "curves of a run as one HTML page, its evaluations and a forecast");
  auto run = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  auto before = std::make_shared<std::optional<double>>();
  app->add_option("--run", *run, "folder of fit")->required();
  app->add_option("-o,--out", *out, "the page (default: report.html in that folder)");
  app->add_option("--tokens-before", *before,
                  "diffusion tokens that the adapter the run began with was trained on (default: "
                  "as that says)")
      ->check(number_in(0, 1e18));
  return [run, out, before] {
    const RunHistory history = read_history(*run, *before);
    const std::string page = out->empty() ? *run + "/report.html" : *out;
    std::error_code error;
    if (std::filesystem::equivalent(page, *run + "/log.jsonl", error)) {
      fail_usage("--out {}: is the run's log", page);
    }
    write_file_atomically(page, html_report(history, *run));
    print(evaluation_table(history) + forecast_text(history) + "curves: " + page + "\n");
    return 0;
  };
}

}  // namespace orthrus::train
