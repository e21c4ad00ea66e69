// A JSONL file of prompts, what its lines ask of a chat template, and a request of `orthrus
// template`.
#include "engine/prompt_lines.h"
#include "engine/template_request.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  const std::string_view text = fuzz::as_text(data, size);
  fuzz::run_parser([&] {
    for (const PromptLine& line : parse_prompt_lines(text, "input")) {
      fuzz::run_parser([&] {
        nlohmann::ordered_json request = {{"messages", nlohmann::ordered_json::array()}};
        line.add_chat(request);
        template_context(request.dump());
      });
    }
  });
  return fuzz::run_parser([&] { template_context(text); });
}
