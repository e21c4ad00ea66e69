#pragma once

namespace orthrus {

/// The whole program: parses, runs a command, reports errors in one line on stderr. Returns the
/// exit code: 0, 1 (failure) or 2 (usage).
int run_program(int argc, const char* const* argv);

}  // namespace orthrus
