#pragma once

#include <functional>

namespace orthrus {

/// The frame of a program: sane signals and streams, logging, and whatever `body` throws as one
/// line on stderr. Returns the exit code: what `body` returns, 2 (usage) or 1 (failure).
int run_framed(const std::function<int()>& body);

/// The whole program: parses, runs a command, reports errors in one line on stderr. Returns the
/// exit code: 0, 1 (failure) or 2 (usage).
int run_program(int argc, const char* const* argv);

}  // namespace orthrus
