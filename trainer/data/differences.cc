#include "trainer/data/differences.h"

#include <fmt/format.h>

#include "formats/printable.h"

namespace orthrus::train {
namespace {

/// As a shell shows it, since words may be empty or have spaces.
std::string quoted(const Words& words, const char* key) {
  const auto found = words.find(key);
  if (found == words.end()) return "not said";
  const std::string text = printable(found->second);
  const bool plain = !text.empty() && text.find(' ') == std::string::npos;
  return plain ? text : "\"" + text + "\"";
}

}  // namespace

std::string differences(std::span<const NamedKey> keys, const Words& made, const Words& asked) {
  std::string text;
  for (const auto& [key, name] : keys) {
    const auto a = made.find(key), b = asked.find(key);
    const bool both_lack = a == made.end() && b == asked.end();
    const bool same = a != made.end() && b != asked.end() && a->second == b->second;
    if (both_lack || same) continue;
    text += fmt::format("{}{} {}, now {}", text.empty() ? "" : "; ", name, quoted(made, key),
                        quoted(asked, key));
  }
  return text;
}

std::string provenance_difference(const Words& made, const Words& asked) {
  static constexpr NamedKey kFlags[] = {
      {"model", "--model"},
      {"weights", "--weights"},
      {"backend", "--backend"},
      {"prompt_files", "--prompts"},
      {"self_prompts", "--self-prompts"},
      {"shard_documents", "--shard-documents"},
      {"max_tokens", "--max-tokens"},
      {"temperature", "--temp"},
      {"seed", "--seed"},
  };
  // Other flags change the prompts alone, or the files themselves have changed.
  static constexpr NamedKey kNumber[] = {{"prompts", "number of prompts (--limit, --exclude)"}};
  static constexpr NamedKey kText[] = {
      {"prompts_hash", "text of the prompts (the files, --exclude, --system-prompt): hash"}};
  // The shards of the engine do not name it.
  const auto complete = [](Words words) {
    words.emplace("backend", "engine");
    return words;
  };
  std::string text = differences(kFlags, complete(made), complete(asked));
  if (text.empty()) text = differences(kNumber, made, asked);
  if (text.empty()) text = differences(kText, made, asked);
  if (text.empty() && made != asked) text = "other words in its provenance";
  return text;
}

std::string short_hash(const std::string& hash) { return hash.substr(0, 12); }

}  // namespace orthrus::train
