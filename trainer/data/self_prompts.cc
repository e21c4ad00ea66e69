#include "trainer/data/self_prompts.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <sstream>

#include "base/error.h"
#include "cli/terminal.h"
#include "text/jinja_string.h"

namespace orthrus::train {
namespace {

constexpr int64_t kMostTokens = 96;
constexpr int64_t kLeastRound = 128, kMostRound = 8192;  // prompts asked for at a time

/// Enough for those that are missing, if most are usable; in full batches.
size_t round_size(int64_t missing) {
  const int64_t wanted = (missing + kLeastRound - 1) / kLeastRound * kLeastRound;
  return static_cast<size_t>(std::min(wanted, kMostRound));
}

}  // namespace

bool usable_self_prompt(const std::string& text) {
  if (text.size() < 12 || text.size() > 2000 || !jinja::is_valid_utf8(text)) return false;
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
                                      Answerer& answerer) {
  const std::vector<std::string> starts =
      request.starts.empty() ? std::vector<std::string>{""} : request.starts;
  std::vector<std::vector<int32_t>> headers;
  for (const std::string& start : starts) {
    headers.push_back(tokenizer.encode(request.header + start, true));
  }
  std::vector<std::string> found;
  std::set<std::string> seen;
  size_t asked = 0;
  while (static_cast<int64_t>(found.size()) < request.count) {
    if (asked >= 512 && found.size() * 20 < asked) {
      fail(
          "self-prompts: only {} of {} texts that the model wrote are usable (12 to 2,000 bytes, "
          "95 % ASCII, three words, few repeats): bring prompts of other scripts by --prompts",
          found.size(), asked);
    }
    const size_t round = round_size(request.count - static_cast<int64_t>(found.size()));
    std::vector<AnswerRequest> requests;
    for (size_t i = asked; i < asked + round; ++i) {
      requests.push_back({headers[i % starts.size()], request.seed + i});
    }
    std::vector<std::string> texts(round);
    answerer.answer(requests, {request.batch, kMostTokens, /*temperature=*/1, /*stride=*/0},
                    [&](size_t i, const std::vector<int32_t>& tokens) {
                      texts[i] = starts[(asked + i) % starts.size()];
                      for (int32_t token : tokens) texts[i] += tokenizer.token_bytes(token);
                    });
    asked += round;
    for (std::string& text : texts) {
      const size_t end = text.find(request.stop);
      if (end == std::string::npos) continue;  // cut by the limit
      text.resize(end);
      if (static_cast<int64_t>(found.size()) < request.count && usable_self_prompt(text) &&
          seen.insert(text).second) {
        found.push_back(text);
      }
    }
    print_stderr(fmt::format("self-prompts: {} of {}\n", found.size(), request.count));
  }
  return found;
}

}  // namespace orthrus::train
