#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "cli/options.h"

namespace orthrus {
namespace {

constexpr size_t kMaxInput = size_t{256} << 20;

std::string read_stream(std::FILE* stream, const std::string& name) {
  std::string text;
  char buffer[1 << 16];
  while (size_t count = std::fread(buffer, 1, sizeof buffer, stream)) {
    text.append(buffer, count);
    if (text.size() > kMaxInput) fail("{}: over {} bytes of text", name, kMaxInput);
  }
  if (std::ferror(stream)) fail("{}: cannot read: {}", name, std::strerror(errno));
  return text;
}

}  // namespace

std::string read_all(const std::string& file) {
  if (file == "-") return read_stream(stdin, "stdin");
  std::FILE* stream = std::fopen(file.c_str(), "rb");
  if (!stream) fail("{}: cannot open: {}", file, std::strerror(errno));
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> closer(stream, std::fclose);
  return read_stream(stream, file);
}

std::string read_text(const PromptFlags& flags, bool keep_newline) {
  int sources =
      (flags.prompt ? 1 : 0) + (flags.file.empty() ? 0 : 1) + (flags.words.empty() ? 0 : 1);
  if (sources == 0)
    fail_usage("no text: give it as an argument, with -p, or with -f (- for stdin)");
  if (sources > 1) fail_usage("the text is given twice: as an argument, with -p or with -f");
  if (flags.prompt) return *flags.prompt;
  if (!flags.file.empty()) {
    std::string text = read_all(flags.file);
    if (!keep_newline && text.ends_with('\n')) text.pop_back();
    return text;
  }
  std::string text;
  for (const std::string& word : flags.words) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace orthrus
