// Runs a fuzz target without libFuzzer, with any compiler: every file given (or in a directory
// given) as it is, then for so many seconds changed at random. The changes come in the same order
// each time; only how far they get depends on the machine.
//   replay_gguf [--seconds=S] [--last=FILE] FILE|DIRECTORY...
// --last keeps the changed input that runs in FILE: of a failed run it is the one that did it.
#include <algorithm>
#include <chrono>
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

class Mutator {
 public:
  explicit Mutator(const std::vector<Bytes>& seeds) : seeds_(seeds) {}

  /// A few changes, each of a kind of its own: bytes, a number, a piece cut out, doubled or taken
  /// from another seed, the end cut off.
  Bytes changed(Bytes input) {
    for (size_t changes = 1 + below(3); changes > 0 && !input.empty(); --changes) change(input);
    return input;
  }

 private:
  size_t below(size_t end) { return random_() % end; }

  void change(Bytes& input) {
    const size_t at = below(input.size());
    const size_t length = 1 + below(std::min<size_t>(input.size() - at, 64));
    const auto begin = input.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    switch (below(6)) {
      case 0:
        *begin = static_cast<uint8_t>(random_());
        break;
      case 1:  // the least and the largest numbers, and those next to them
        std::fill(begin, end, static_cast<uint8_t>(below(2) ? 0xff : 0));
        *begin = static_cast<uint8_t>(*begin + below(3) - 1);
        break;
      case 2:
        input.erase(begin, end);
        break;
      case 3: {
        const Bytes piece(begin, end);
        input.insert(begin, piece.begin(), piece.end());
        break;
      }
      case 4: {
        const Bytes& other = seeds_[below(seeds_.size())];
        if (other.empty()) break;
        const size_t from = below(other.size());
        const size_t count = 1 + below(std::min<size_t>(other.size() - from, 64));
        const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
        input.insert(begin, first, first + static_cast<std::ptrdiff_t>(count));
        break;
      }
      default:
        input.resize(at);
    }
  }

  const std::vector<Bytes>& seeds_;
  std::mt19937 random_{1};
};

std::vector<fs::path> inputs(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns how many changed inputs were run.
size_t run_changed(const std::vector<Bytes>& seeds, double seconds, const std::string& last) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  Mutator mutator(seeds);
  size_t count = 0;
  while (std::chrono::steady_clock::now() < end) {
    const Bytes input = mutator.changed(seeds[count % seeds.size()]);
    if (!last.empty()) {
      std::ofstream(last, std::ios::binary)
          .write(reinterpret_cast<const char*>(input.data()),
                 static_cast<std::streamsize>(input.size()));
    }
    run(input);
    ++count;
  }
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0;
  std::string last;
  std::vector<Bytes> seeds;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("--seconds=")) {
      seconds = std::atof(argument.c_str() + argument.find('=') + 1);
      continue;
    }
    if (argument.starts_with("--last=")) {
      last = argument.substr(argument.find('=') + 1);
      continue;
    }
    for (const fs::path& path : inputs(argument)) {
      std::ifstream file(path, std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      run(seeds.back());
    }
  }
  if (seeds.empty()) {
    std::fprintf(stderr, "no inputs: an empty corpus checks nothing\n");
    return 1;
  }
  std::printf("%zu inputs, %zu changed ones\n", seeds.size(), run_changed(seeds, seconds, last));
  return 0;
}
