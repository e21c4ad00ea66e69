// A tokenizer.json and a text for it. The first two bytes say where the text begins (little endian,
// from the third on); what lies before it is the file.
#include <algorithm>

#include "parser_input.h"
#include "text/stream_decoder.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  if (size < 2) return 0;
  const std::string_view rest = fuzz::as_text(data + 2, size - 2);
  const size_t cut = std::min<size_t>(data[0] | data[1] << 8, rest.size());
  return fuzz::run_parser([&] {
    const Tokenizer tokenizer = Tokenizer::from_json(rest.substr(0, cut));
    const std::vector<int32_t> ids = tokenizer.encode(rest.substr(cut), true);
    tokenizer.decode(ids);
    StreamDecoder decoder(tokenizer);
    for (int32_t id : ids) decoder.push(id);
    decoder.finish();
  });
}
