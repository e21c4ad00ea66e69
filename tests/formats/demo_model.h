#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace orthrus::testing {

/// The demo GGUF that `orthrus pull smollm2-135m` fetches and `make test` fetches first. A test
/// that needs it fails with this message where it is missing.
inline std::string demo_model() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string path = variable("ORTHRUS_DEMO_GGUF");
  if (path.empty()) {
    const std::string cache = variable("XDG_CACHE_HOME");
    path = (cache.empty() ? variable("HOME") + "/.cache" : cache) +
           "/orthrus/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf";
  }
  if (!std::filesystem::exists(path)) {
    throw std::runtime_error("the demo model is not at " + path +
                             ": run `make test`, or set ORTHRUS_DEMO_GGUF");
  }
  return path;
}

}  // namespace orthrus::testing
