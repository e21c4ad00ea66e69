// The first byte chooses what is looked for and the size of the pieces, the rest is an answer. In
// pieces it says what it says as a whole, and nothing but tags, white space and the frames of calls
// is lost.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "parser_input.h"
#include "server/api_answer_parser.h"

namespace {

using namespace orthrus;

std::string told_apart(std::string_view text, Thought thought, bool tools, size_t piece) {
  AnswerParser parser(thought, tools, "call_");
  std::vector<AnswerEvent> events;
  for (size_t at = 0; at < text.size(); at += piece) parser.feed(text.substr(at, piece), events);
  parser.finish(events);
  std::string out;
  const AnswerEvent* last = nullptr;
  for (const AnswerEvent& event : events) {
    const bool same = last && last->kind == event.kind && last->call == event.call;
    if (!same) out += "\x01" + std::to_string(static_cast<int>(event.kind)) + event.id + event.name;
    out += event.text;
    last = &event;
  }
  return out + "\x02" + std::to_string(parser.thought_bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string_view text = fuzz::as_text(data + 1, size - 1);
  const auto thought = static_cast<Thought>(data[0] % 3);
  const bool tools = data[0] / 3 % 2;
  const std::string whole = told_apart(text, thought, tools, text.size() + 1);
  const std::string pieces = told_apart(text, thought, tools, 1 + data[0] / 6 % 16);
  const bool all_there = thought != Thought::kNone || tools || text.empty() ||
                         whole ==
                             "\x01"
                             "1" +
                                 std::string(text) +
                                 "\x02"
                                 "0";
  if (whole == pieces && all_there) return 0;
  std::fprintf(stderr, "whole:  %s\npieces: %s\n", whole.c_str(), pieces.c_str());
  std::abort();
}
