// The input up to its first zero byte is a JSON schema, the rest a text for it. A text that may end
// must be JSON.
#include <nlohmann/json.hpp>

#include "grammar_input.h"
#include "parser_input.h"

namespace {

/// Takes, from `seed` on, some allowed byte a step.
void answer(const std::shared_ptr<const orthrus::Grammar>& grammar, std::string_view seed) {
  using namespace orthrus;
  static const auto tokens = [] {
    static std::array<char, 256> bytes;
    std::vector<std::string_view> list;
    for (size_t i = 0; i < 256; ++i) {
      bytes[i] = static_cast<char>(i);
      list.emplace_back(&bytes[i], 1);
    }
    return std::make_shared<const TokenTrie>(list);
  }();
  GrammarMatcher matcher(grammar, tokens, {});
  std::string text;
  for (const char c : seed.substr(0, 64)) {
    const auto mask = matcher.mask();
    const auto wanted = static_cast<unsigned char>(c);
    for (unsigned i = 0; i < 256; ++i) {
      const unsigned byte = (wanted + i) % 256;
      if (!(mask[byte / 64] >> (byte % 64) & 1)) continue;
      ORTHRUS_CHECK(matcher.accept(static_cast<int32_t>(byte)));
      text += static_cast<char>(byte);
      break;
    }
    if (matcher.may_end()) ORTHRUS_CHECK(nlohmann::json::accept(text));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  const std::string_view input = fuzz::as_text(data, size);
  const size_t end = input.find('\0');
  const std::string_view text = end == input.npos ? "{\"a\":[1,\"x\"]}" : input.substr(end + 1);
  return fuzz::run_parser([&] {
    const auto grammar = parse_json_schema(input.substr(0, end));
    fuzz::match(grammar, text);
    answer(grammar, text);
  });
}
