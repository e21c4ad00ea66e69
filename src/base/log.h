#pragma once

#include <spdlog/spdlog.h>

namespace orthrus {

/// Notices and warnings go to stderr through spdlog's default logger: `orthrus: warning: ...`.
/// Colours only on a terminal and without NO_COLOR. Called once at the start of the program.
void init_logging();

}  // namespace orthrus
