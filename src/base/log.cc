#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <unistd.h>

#include <cstdlib>

namespace orthrus {

void init_logging() {
  const char* no_color = std::getenv("NO_COLOR");
  const bool color = ::isatty(STDERR_FILENO) && (!no_color || !*no_color);
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(
      color ? spdlog::color_mode::always : spdlog::color_mode::never);
  auto logger = std::make_shared<spdlog::logger>("orthrus", sink);
  logger->set_pattern("%n: %^%l%$: %v");
  spdlog::set_default_logger(logger);
}

}  // namespace orthrus
