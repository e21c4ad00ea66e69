#include "trainer/data/self_prompts.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "base/error.h"

namespace orthrus::train {
namespace {

constexpr int64_t kMostTokens = 96;
constexpr size_t kRound = 128;  // prompts asked for at a time

}  // namespace

bool usable_self_prompt(const std::string& text) {
  if (text.size() < 12 || text.size() > 2000) return false;
  const auto letters = std::count_if(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x80 && std::isprint(byte);
  });
  if (static_cast<double>(letters) < 0.95 * static_cast<double>(text.size())) return false;
  std::istringstream words(text);
  std::set<std::string> distinct;
  size_t count = 0;
  for (std::string word; words >> word; ++count) distinct.insert(word);
  return count >= 3 && static_cast<double>(distinct.size()) > 0.4 * static_cast<double>(count);
}

std::vector<std::string> self_prompts(const SelfPromptRequest& request, const Tokenizer& tokenizer,
                                      GenerateOptions generate) {
  generate.temperature = 1;
  generate.max_tokens = kMostTokens;
  std::vector<std::string> found;
  std::set<std::string> seen;
  const std::vector<std::string> starts =
      request.starts.empty() ? std::vector<std::string>{""} : request.starts;
  std::vector<std::vector<int32_t>> headers;
  for (size_t i = 0; i < kRound; ++i) {
    headers.push_back(tokenizer.encode(request.header + starts[i % starts.size()], true));
  }
  size_t asked = 0;
  while (static_cast<int64_t>(found.size()) < request.count) {
    if (asked >= 512 && found.size() * 20 < asked) {
      fail("self-prompts: only {} of {} texts that the model wrote are usable", found.size(),
           asked);
    }
    const auto answers = generate_answers(headers, generate, request.scratch);
    generate.seed += kRound;
    asked += kRound;
    for (size_t i = 0; i < answers.size(); ++i) {
      std::string text = starts[i % starts.size()] + tokenizer.decode(answers[i]);
      const size_t end = text.find(request.stop);
      if (end == std::string::npos) continue;  // cut by the limit
      text.resize(end);
      if (static_cast<int64_t>(found.size()) < request.count && usable_self_prompt(text) &&
          seen.insert(text).second) {
        found.push_back(text);
      }
    }
    fmt::print(stderr, "self-prompts: {} of {}\n", found.size(), request.count);
  }
  return found;
}

}  // namespace orthrus::train
