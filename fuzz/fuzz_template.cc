// The input up to its first zero byte is a template, the rest its context as JSON. Whatever comes,
// it renders or throws Error(kInput), within the interpreter's own limits.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parser_input.h"
#include "text/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Json = nlohmann::ordered_json;
  const std::string_view input = orthrus::fuzz::as_text(data, size);
  const size_t zero = input.find('\0');
  const std::string_view rest = zero == input.npos ? "" : input.substr(zero + 1);
  Json context = Json::parse(rest, nullptr, false);
  if (!context.is_object()) {
    context = {{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
               {"add_generation_prompt", true}};
  }
  return orthrus::fuzz::run_parser(
      [&] { orthrus::ChatTemplate(input.substr(0, zero)).render(context); });
}
