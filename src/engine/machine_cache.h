#pragma once

#include <optional>
#include <string>

#include "decode/cost_model.h"
#include "kernels/isa.h"
#include "kernels/probe.h"

namespace orthrus {

/// What this machine can do at best, for the cost model: from machine.json in the user's cache
/// ($XDG_CACHE_HOME/orthrus, default ~/.cache/orthrus), keyed by CPU, instruction set and threads;
/// where that has no usable entry, measured in about a third of a second and written there. What
/// was measured while other programs had the cores is measured again by the next process, and the
/// higher rates count. A cache that cannot be read or written is no error.
MachineRates machine_rates(const ComputeContext& context);

/// The entry of a machine.json for that CPU, instruction set and number of threads; none where the
/// file is absent, malformed or has no such entry.
std::optional<MachineLimits> read_machine_limits(const std::string& path, const std::string& cpu,
                                                 const std::string& isa, int threads);

/// Adds or replaces the entry of `limits`, keeping those of other machines (a home directory may be
/// shared). The file is replaced in one step, so that no reader sees half of it. False where it
/// could not be written.
bool write_machine_limits(const std::string& path, const MachineLimits& limits);

}  // namespace orthrus
