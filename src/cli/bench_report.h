#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench_cases.h"

namespace orthrus {

/// One run of `orthrus bench`.
struct BenchReport {
  std::string model;          ///< what was measured
  std::string weights;        ///< runtime format
  std::string draft_weights;  ///< draft_weights_name()
  std::string kv_type;        ///< of cached keys and values
  int reps = 0;
  BenchRun run;
};

/// {"model", "reps", "machine", "probes", "cases", "break_even", "warnings"}; null for what a case
/// has not.
nlohmann::ordered_json bench_json(const BenchReport& report);

/// The same as a table for people.
std::string bench_table(const BenchReport& report);

/// A line for each case that beats its limit by over 3 %: then the probe of the machine is broken,
/// or the case reads from a cache of the CPU.
std::vector<std::string> bench_warnings(const BenchReport& report);

}  // namespace orthrus
