// An HTTP request in pieces, and who may send it. The first byte is the size of the pieces.
#include "base/error.h"
#include "parser_input.h"
#include "server/http_gate.h"
#include "server/http_parser.h"

namespace {

using orthrus::HttpParser;

struct Outcome {
  HttpParser::Step step = HttpParser::Step::kMore;
  orthrus::HttpRequest request;
};

Outcome parse(std::string_view bytes, size_t piece, const orthrus::HttpGate& gate) {
  HttpParser parser(512, 1024);
  Outcome out;
  std::string input;
  while (!bytes.empty() && out.step == HttpParser::Step::kMore) {
    input += bytes.substr(0, piece);
    bytes.remove_prefix(std::min(piece, bytes.size()));
    do {
      size_t used = 0;
      out.step = parser.put(input, used);
      ORTHRUS_CHECK(used <= input.size());
      input.erase(0, used);
      if (out.step == HttpParser::Step::kHeader) gate.check(parser.request());
    } while (out.step == HttpParser::Step::kHeader);
    ORTHRUS_CHECK(parser.body_bytes() <= 1024);
    if (out.step == HttpParser::Step::kMore) ORTHRUS_CHECK(input.size() <= 512);
  }
  out.request = std::move(parser.request());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const orthrus::HttpGate gate = [] {
    orthrus::HttpOptions options;
    options.api_keys = {"key"};
    options.cors_origins = {"http://a"};
    return orthrus::HttpGate(options);
  }();
  const std::string_view text = orthrus::fuzz::as_text(data + 1, size - 1);
  return orthrus::fuzz::run_parser([&] {
    const Outcome whole = parse(text, text.size(), gate);
    const Outcome cut = parse(text, 1 + data[0] % 16, gate);
    // What is wrong may be noticed later when it comes in pieces; a request is the same.
    using Step = HttpParser::Step;
    ORTHRUS_CHECK((whole.step == Step::kComplete) == (cut.step == Step::kComplete));
    if (whole.step != Step::kComplete) return;
    ORTHRUS_CHECK(whole.request.path == cut.request.path);
    ORTHRUS_CHECK(whole.request.headers == cut.request.headers);
    ORTHRUS_CHECK(whole.request.body == cut.request.body);
  });
}
