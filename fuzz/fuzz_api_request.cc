// The first byte chooses an endpoint, the rest is the body of a request to it. Whatever comes, it
// is read, or refused with a 4xx of one line; what a chat holds can be written as JSON again.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "parser_input.h"
#include "server/api_error.h"
#include "server/api_json.h"
#include "server/api_request.h"

namespace {

void check(const orthrus::ApiError& error) {
  const std::string_view text = error.what();
  const bool one_line = text.find('\n') == text.npos && text.size() < 4096;
  if (one_line && error.status >= 400 && error.status < 500 && !text.empty()) return;
  std::fprintf(stderr, "%d %s\n", error.status, error.what());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  if (size == 0) return 0;
  const std::string_view body = fuzz::as_text(data + 1, size - 1);
  ApiContext context;
  context.models = {"tiny"};
  context.vocab_size = 1024;
  context.thinks = true;
  try {
    switch (data[0] % 4) {
      case 0:
        dump_json_line(parse_chat_request(body, context).context);
        break;
      case 1:
        parse_completion_request(body, context);
        break;
      case 2:
        dump_json_line(parse_tokenize_request(body, context).context);
        break;
      default:
        parse_detokenize_request(body, context);
    }
  } catch (const ApiError& error) {
    check(error);
    error_body(error);
  }
  return 0;
}
