#include "cli/compare.h"

#include <fmt/format.h>

#include "cli/interrupt.h"
#include "cli/result_report.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

void print_row(const char* view, const GenerateResult& result) {
  print(fmt::format("{:<6}{:>8}{:>11.1f}{:>14.2f}{:>14.2f}{:>8.2f}{:>12}\n", view,
                    result.token_ids.size(), decode_rate(result), result.tokens_per_cycle(),
                    result.acceptance_length(), result.tpf(), grouped(result.kv_bytes)));
}

void print_table(const GenerateResult& dual, const GenerateResult& ar, bool identical) {
  print(fmt::format("\n{:<6}{:>8}{:>11}{:>14}{:>14}{:>8}{:>12}\n", "view", "tokens", "tokens/s",
                    "tokens/cycle", "accepted/cyc", "TPF", "KV bytes"));
  print_row("dual", dual);
  print_row("ar", ar);
  double ratio = decode_rate(ar) > 0 ? decode_rate(dual) / decode_rate(ar) : 0;
  print(
      fmt::format("speed: {:.2f} x plain AR (one run of each; `orthrus bench --compare ar,dual` "
                  "measures)\nidentical: {}\n",
                  ratio, identical ? "yes" : "no"));
}

}  // namespace

int compare_views(LanguageModel& model, const std::vector<int32_t>& prompt,
                  const GenerateOptions& options) {
  InterruptGuard interrupt;
  GenerateResult results[2];
  for (bool dual : {true, false}) {
    GenerateOptions one = options;
    one.use_diffusion_mode = dual;
    print(dual ? "--- dual view ---\n" : "\n--- plain AR ---\n");
    StdoutStreamer streamer(prompt.size());
    results[dual ? 0 : 1] = model.generate(prompt, one, &streamer, nullptr, interrupt.token());
    streamer.end_line();
    if (interrupt.interrupted()) return 130;
  }
  bool identical = results[0].token_ids == results[1].token_ids;
  print_table(results[0], results[1], identical);
  return identical || options.consensus != Consensus::kExact ? 0 : 1;
}

}  // namespace orthrus
