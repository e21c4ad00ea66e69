// One part of a GGUF model: its container, its configuration and its tensor table, its tokenizer
// and its chat template. Each is tried, whatever the others say of the file.
#include <vector>

#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/tensor_names.h"
#include "parser_input.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace {

using namespace orthrus;

void check_weights(const GgufFile& file) {
  base_hash(file);  // reads both ends of every tensor
  const ModelConfig config = parse_gguf_config(file);
  check_tensors(file, ar_tensors(config));
}

void check_tokenizer(const GgufFile& file) {
  const Tokenizer tokenizer = Tokenizer::from_gguf(file.metadata());
  const std::vector<int32_t> ids =
      tokenizer.encode("Hello, it's 123  <|im_start|>\n\xC3\xA9\xFF", true);
  tokenizer.decode(ids);
}

void check_template(const GgufFile& file) {
  const auto source = file.metadata().get<std::string_view>("tokenizer.chat_template");
  if (!source) return;
  ChatTemplate(*source).render(
      {{"messages", {{{"role", "user"}, {"content", "Hi"}}}}, {"add_generation_prompt", true}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::run_parser([&] {
    const GgufFile file(fuzz::as_bytes(data, size), "input");
    fuzz::run_parser([&] { check_weights(file); });
    fuzz::run_parser([&] { check_tokenizer(file); });
    fuzz::run_parser([&] { check_template(file); });
  });
}
