#pragma once

#include <time.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/tokenizer.h"

namespace orthrus {

/// The JSON values of a file with one a line; throws where there are none.
inline std::vector<nlohmann::json> read_jsonl(const std::string& path) {
  std::ifstream file(path);
  std::vector<nlohmann::json> values;
  for (std::string line; std::getline(file, line);) values.push_back(nlohmann::json::parse(line));
  if (values.empty()) throw std::runtime_error("no lines in " + path);
  return values;
}

/// Qwen3's tokenizer.json; it is kept compressed, as it has 11 MB.
inline const std::string& qwen3_json() {
  static const std::string text = [] {
    std::string path = ORTHRUS_TEST_DATA "/tokenizer/qwen3_tokenizer.json.xz";
    std::string command =
        "python3 -c 'import lzma, sys; sys.stdout.buffer.write(lzma.open(sys.argv[1]).read())' '" +
        path + "'";
    FILE* pipe = popen(command.c_str(), "r");
    std::string out;
    std::array<char, 65536> buffer;
    while (size_t count = pipe ? fread(buffer.data(), 1, buffer.size(), pipe) : 0) {
      out.append(buffer.data(), count);
    }
    if (!pipe || pclose(pipe) != 0) throw std::runtime_error("cannot decompress " + path);
    return out;
  }();
  return text;
}

inline const Tokenizer& qwen3() {
  static const Tokenizer tokenizer = Tokenizer::from_json(qwen3_json());
  return tokenizer;
}

/// The demo model's file: $ORTHRUS_DEMO_GGUF, or where `orthrus pull` puts it.
inline std::string demo_gguf() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string path = variable("ORTHRUS_DEMO_GGUF"); !path.empty()) return path;
  std::string cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = variable("HOME") + "/.cache";
  return cache + "/orthrus/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf";
}

/// SmolLM2's tokenizer, from the demo model. Throws where that was not fetched ("make test" does).
inline const Tokenizer& smollm2() {
  static const Tokenizer tokenizer = Tokenizer::load(demo_gguf());
  return tokenizer;
}

/// Seconds of CPU time that `work` takes in this thread.
template <typename Work>
double cpu_seconds(Work work) {
  auto now = [] {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  double begin = now();
  work();
  return now() - begin;
}

/// How much slower than a plain build this one may be.
#if defined(ORTHRUS_SANITIZED) || !defined(__OPTIMIZE__)
inline constexpr double kSlowBuild = 20;
#else
inline constexpr double kSlowBuild = 1;
#endif

}  // namespace orthrus
