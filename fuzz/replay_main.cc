// Runs a fuzz target without libFuzzer, with any compiler: every file given (or in a directory
// given) as it is, then cut short and with bytes changed, the same way each time.
//   replay_gguf [--variants=N] FILE|DIRECTORY...
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

/// The input sits at the end of an exact allocation, so that a sanitizer sees a read past it.
void run(const Bytes& input) {
  const Bytes exact(input.begin(), input.end());
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

void run_variants(const Bytes& input, int variants) {
  if (input.empty()) return;
  std::mt19937 random(1);
  for (int i = 0; i < variants; ++i) {
    Bytes changed = input;
    if (i % 4 == 0) changed.resize(random() % input.size());
    for (int edits = i % 4; edits > 0; --edits) {
      changed[random() % changed.size()] = static_cast<uint8_t>(random());
    }
    run(changed);
  }
}

std::vector<fs::path> inputs(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int argc, char** argv) {
  int variants = 0;
  size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::string flag = "--variants=";
    if (argument.starts_with(flag)) {
      variants = std::atoi(argument.c_str() + flag.size());
      continue;
    }
    for (const fs::path& path : inputs(argument)) {
      std::ifstream file(path, std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(file), {}};
      run(bytes);
      run_variants(bytes, variants);
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0;  // an empty corpus checks nothing
}
