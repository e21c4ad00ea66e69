// config.json, then, after a zero byte, generation_config.json.
#include "formats/hf_config.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  const std::string_view text = fuzz::as_text(data, size);
  const size_t end = text.find('\0');
  HfConfigFiles files;
  files.directory = "input";
  files.config = text.substr(0, end);
  if (end != std::string_view::npos) files.generation = text.substr(end + 1);
  return fuzz::run_parser([&] { parse_hf_config(files); });
}
