// One part of a GGUF model: its container, its configuration and its tensor table.
#include "formats/checkpoint.h"
#include "formats/gguf.h"
#include "formats/hf_config.h"
#include "formats/tensor_names.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  return fuzz::run_parser([&] {
    const GgufFile file(fuzz::as_bytes(data, size), "input");
    base_hash(file);  // reads both ends of every tensor
    const ModelConfig config = parse_gguf_config(file);
    check_tensors(file, ar_tensors(config));
  });
}
