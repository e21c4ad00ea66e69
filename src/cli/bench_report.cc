#include "cli/bench_report.h"

#include <fmt/format.h>

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kBrokenProbe = 0.97;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

std::string or_dash(const std::optional<double>& value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "-";
}

Json case_json(const BenchReport& report, const BenchResult& result) {
  const BenchCase& c = *result.bench_case;
  return {{"name", c.name},
          {"weights", report.weights},
          {"kv_type", report.kv_type},
          {"rows", c.rows},
          {"context", or_null(c.context)},
          {"seconds", result.seconds},
          {"gbps", or_null(result.gbps)},
          {"gflops", or_null(result.gflops)},
          {"limit_seconds", or_null(result.limit_seconds)},
          {"ratio_to_one_row", or_null(result.ratio_to_one_row)},
          {"ratio_to_limit", or_null(result.ratio_to_limit)}};
}

Json rates_json(const MachineLimits& m) {
  return {{"read_gbps", m.read_gbps},
          {"fma_gflops", m.fma_gflops},
          {"int8_gops", m.int8_gops},
          {"bf16_gflops", m.bf16_gflops}};
}

std::string case_row(const BenchResult& result) {
  const BenchCase& c = *result.bench_case;
  return fmt::format("{:<10}{:>6}{:>9}{:>10.3f}{:>10.3f}{:>10.3f}{:>8}{:>9}{:>11}{:>9}\n", c.name,
                     c.rows, c.context ? fmt::to_string(*c.context) : "-", 1e3 * result.least,
                     1e3 * result.seconds, 1e3 * result.most, or_dash(result.gbps, 1),
                     or_dash(result.gflops, 1), or_dash(result.ratio_to_one_row, 2),
                     or_dash(result.ratio_to_limit, 2));
}

/// Two-pass cycles: the block's rows and the tokens a cycle at which it is as fast as plain AR.
Json break_even(const BenchReport& report) {
  Json list = Json::array();
  for (const BenchResult& result : report.run.results) {
    if (result.bench_case->name != "dual" || !result.ratio_to_one_row) continue;
    list.push_back({{"block", result.bench_case->rows},
                    {"context", *result.bench_case->context},
                    {"tokens_per_cycle", *result.ratio_to_one_row}});
  }
  return list;
}

}  // namespace

Json bench_json(const BenchReport& report) {
  const MachineLimits& m = report.run.machine;
  Json machine = {{"cpu", m.cpu}, {"isa", m.isa}, {"threads", m.threads}};
  machine.update(rates_json(m));
  Json probes = Json::array();
  for (const MachineLimits& probe : report.run.probes) probes.push_back(rates_json(probe));
  Json cases = Json::array();
  for (const BenchResult& result : report.run.results) cases.push_back(case_json(report, result));
  return {{"model", report.model},
          {"draft_weights", report.draft_weights},
          {"reps", report.reps},
          {"machine", std::move(machine)},
          {"probes", std::move(probes)},
          {"cases", std::move(cases)},
          {"break_even", break_even(report)},
          {"warnings", bench_warnings(report)}};
}

std::string bench_table(const BenchReport& report) {
  const MachineLimits& m = report.run.machine;
  std::string text = fmt::format(
      "{}, {}, {} thread{}: reads {:.1f} GB/s, {:.0f} GFLOP/s f32, {:.0f} bf16, {:.0f} Gop/s "
      "int8\n"
      "{}, {} weights, drafts {}, {} keys and values, {} repetitions\n\n",
      m.cpu, m.isa, m.threads, m.threads == 1 ? "" : "s", m.read_gbps, m.fma_gflops, m.bf16_gflops,
      m.int8_gops, report.model, report.weights, report.draft_weights, report.kv_type, report.reps);
  text +=
      fmt::format("{:<10}{:>6}{:>9}{:>10}{:>10}{:>10}{:>8}{:>9}{:>11}{:>9}\n", "case", "rows",
                  "context", "min ms", "median", "max", "GB/s", "GFLOP/s", "x one row", "x limit");
  for (const BenchResult& result : report.run.results) text += case_row(result);
  const Json even = break_even(report);
  if (!even.empty()) text += "\nbreak-even of a two-pass cycle, tokens a cycle:";
  for (const Json& entry : even) {
    text += fmt::format("\n  block {} behind {} tokens: {:.2f}", entry["block"].get<int64_t>(),
                        entry["context"].get<int64_t>(), entry["tokens_per_cycle"].get<double>());
  }
  return text + (even.empty() ? "" : "\n");
}

std::vector<std::string> bench_warnings(const BenchReport& report) {
  std::vector<std::string> lines;
  for (const BenchResult& result : report.run.results) {
    if (!result.ratio_to_limit || *result.ratio_to_limit >= kBrokenProbe) continue;
    const BenchCase& c = *result.bench_case;
    lines.push_back(fmt::format(
        "{} of {} rows takes {:.2f} of its limit: the probe of the machine is broken, or the case "
        "reads from the CPU's cache",
        c.name, c.rows, *result.ratio_to_limit));
  }
  return lines;
}

}  // namespace orthrus
