// A safetensors file.
#include "formats/checkpoint.h"
#include "formats/safetensors.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  return fuzz::run_parser([&] {
    const SafetensorsSource source(fuzz::as_bytes(data, size), "input");
    base_hash(source);  // reads both ends of every tensor
  });
}
