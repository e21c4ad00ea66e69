// The input up to its first zero byte is a grammar in GBNF, the rest a text for it.
#include "grammar_input.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  const std::string_view input = fuzz::as_text(data, size);
  const size_t end = input.find('\0');
  const std::string_view text = end == input.npos ? "" : input.substr(end + 1);
  return fuzz::run_parser([&] { fuzz::match(parse_gbnf(input.substr(0, end)), text); });
}
