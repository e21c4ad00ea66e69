#include "server/api_answer_parser.h"

#include <gtest/gtest.h>

#include "server/api_call_head.h"

namespace orthrus {
namespace {

using Kind = AnswerEvent::Kind;
using Events = std::vector<AnswerEvent>;

// Pieces of the same kind as one.
Events merged(const Events& events) {
  Events out;
  for (const AnswerEvent& event : events) {
    const bool more = !out.empty() && !event.text.empty() && out.back().kind == event.kind &&
                      out.back().call == event.call;
    if (more) {
      out.back().text += event.text;
    } else {
      out.push_back(event);
    }
  }
  return out;
}

// One line an event.
std::string shown(const Events& events) {
  std::string out;
  for (const AnswerEvent& event : merged(events)) {
    switch (event.kind) {
      case Kind::kReasoning:
        out += "R[" + event.text + "]\n";
        break;
      case Kind::kContent:
        out += "C[" + event.text + "]\n";
        break;
      case Kind::kCallBegin:
        out += std::to_string(event.call) + " " + event.id + " " + event.name + "\n";
        break;
      case Kind::kArguments:
        out += std::to_string(event.call) + "[" + event.text + "]\n";
        break;
      case Kind::kCallEnd:
        out += std::to_string(event.call) + " end\n";
        break;
    }
  }
  return out;
}

struct Parsed {
  std::string events;
  size_t thought_bytes;
};

Parsed parse_pieces(const std::vector<std::string>& pieces, Thought thought, bool tools) {
  AnswerParser parser(thought, tools, "call_");
  Events events;
  for (const std::string& piece : pieces) parser.feed(piece, events);
  parser.finish(events);
  return {shown(events), parser.thought_bytes()};
}

// Parses the whole; every cut in two, and single bytes, must say the same.
std::string parse(const std::string& text, Thought thought = Thought::kMayBegin,
                  bool tools = true) {
  const Parsed whole = parse_pieces({text}, thought, tools);
  std::vector<std::string> bytes;
  for (size_t i = 0; i <= text.size(); ++i) {
    const Parsed cut = parse_pieces({text.substr(0, i), text.substr(i)}, thought, tools);
    EXPECT_EQ(cut.events, whole.events) << "cut at " << i;
    EXPECT_EQ(cut.thought_bytes, whole.thought_bytes) << "cut at " << i;
    if (i < text.size()) bytes.push_back(text.substr(i, 1));
  }
  EXPECT_EQ(parse_pieces(bytes, thought, tools).events, whole.events);
  return whole.events;
}

TEST(AnswerParser, TextIsText) {
  EXPECT_EQ(parse("Hello <b>you</b> \n"), "C[Hello <b>you</b> \n]\n");
  EXPECT_EQ(parse("  spaces"), "C[  spaces]\n");
  EXPECT_EQ(parse(""), "");
  EXPECT_EQ(parse("<thin"), "C[<thin]\n");
  EXPECT_EQ(parse("a <tool_"), "C[a <tool_]\n");
  EXPECT_EQ(parse("no <think>ing</think>"), "C[no <think>ing</think>]\n");
}

TEST(AnswerParser, ThoughtsAreToldApart) {
  EXPECT_EQ(parse("<think>\nLet me see.\n</think>\n\nFour."), "R[Let me see.]\nC[Four.]\n");
  EXPECT_EQ(parse("\n<think>a</think>b"), "R[a]\nC[b]\n");
  EXPECT_EQ(parse("<think>\n\n</think>\n\nFour. "), "C[Four. ]\n");
  EXPECT_EQ(parse("<think>never < done </think"), "R[never < done </think]\n");
  EXPECT_EQ(parse("<think><think>a</think></think>"), "R[<think>a]\nC[</think>]\n");
  EXPECT_EQ(parse("hm\n</think>\n\nx", Thought::kOpen), "R[hm]\nC[x]\n");
  EXPECT_EQ(parse("<think>a</think>b", Thought::kNone), "C[<think>a</think>b]\n");
  EXPECT_EQ(parse("<think> \n", Thought::kMayBegin), "");
  // Calls within a thought are none.
  EXPECT_EQ(parse("<think><tool_call>{\"name\": \"f\"}</tool_call></think>x"),
            "R[<tool_call>{\"name\": \"f\"}</tool_call>]\nC[x]\n");
}

TEST(AnswerParser, CountsTheBytesOfTheThought) {
  EXPECT_EQ(parse_pieces({"<think>ab</think> c"}, Thought::kMayBegin, true).thought_bytes, 17u);
  EXPECT_EQ(parse_pieces({"ab</think>c"}, Thought::kOpen, true).thought_bytes, 10u);
  EXPECT_EQ(parse_pieces({"<think>ab"}, Thought::kMayBegin, true).thought_bytes, 9u);
  EXPECT_EQ(parse_pieces({"ab"}, Thought::kMayBegin, true).thought_bytes, 0u);
}

TEST(AnswerParser, CallsAreToldApart) {
  EXPECT_EQ(
      parse("<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": [1, {\"b\": \"}\\\"\"}]}}"
            "\n</tool_call>"),
      "0 call_0 add\n0[{\"a\": [1, {\"b\": \"}\\\"\"}]}]\n0 end\n");
  EXPECT_EQ(
      parse("<think>t</think>\n\nI call.\n<tool_call>{\"name\":\"a\",\"arguments\":{}}"
            "</tool_call>\n<tool_call>\n{ \"name\" : \"\\u0062\" , \"arguments\" : {\"x\":1} }\n"
            "</tool_call>\n"),
      "R[t]\nC[I call.]\n0 call_0 a\n0[{}]\n0 end\n1 call_1 b\n1[{\"x\":1}]\n1 end\n");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"now\"}</tool_call> done"),
            "0 call_0 now\n0[{}]\n0 end\nC[done]\n");
  EXPECT_EQ(
      parse("<tool_call>{\"name\": \"f\", \"arguments\": {\"t\": \"</tool_call> é\"}}</tool_call>"),
      "0 call_0 f\n0[{\"t\": \"</tool_call> é\"}]\n0 end\n");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\"}</tool_call>", Thought::kMayBegin, false),
            "C[<tool_call>{\"name\": \"f\"}</tool_call>]\n");
}

TEST(AnswerParser, WhatIsNoCallIsNotLost) {
  const char* texts[] = {
      "see\n<tool_call>\nnothing</tool_call>\nmore",
      "<tool_call>{\"nam\": 1}</tool_call>",
      "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"arguments\": \"{}\"}</tool_call>",
      "<tool_call>{\"name\": \"f\\x\", \"arguments\": {}}</tool_call>",
      "<tool_call>{\"arguments\": {}, \"name\": \"f\"}</tool_call>",
      "<tool_call>{\"name\": \"f\", \"argu",
      "<tool_call>",
  };
  for (const char* text : texts) EXPECT_EQ(parse(text), "C[" + std::string(text) + "]\n");
  // A real one may follow.
  EXPECT_EQ(parse("<tool_call><tool_call>{\"name\": \"f\"}</tool_call>"),
            "C[<tool_call>]\n0 call_0 f\n0[{}]\n0 end\n");
}

TEST(AnswerParser, CallsThatAreCutOffEnd) {
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"b"),
            "0 call_0 f\n0[{\"a\": \"b]\n0 end\n");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}"),
            "0 call_0 f\n0[{\"a\": 1}]\n0 end\n");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool"),
            "0 call_0 f\n0[{\"a\": 1}]\n0 end\n");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": </tool_call> x"),
            "0 call_0 f\n0[{\"a\": ]\n0 end\nC[x]\n");
  EXPECT_EQ(parse("<tool_call>{\"name\": \"f\", \"arguments\": {}} and so on"),
            "0 call_0 f\n0[{}]\n0 end\nC[and so on]\n");
}

TEST(AnswerParser, LongRunsOfSpaceStayTextAndCostLittle) {
  const std::string space(300, ' ');
  EXPECT_EQ(parse("a" + space), "C[a" + space + "]\n");
  EXPECT_EQ(parse("a" + space + "<tool_call>{\"name\": \"f\"}" + space + "</tool_call>"),
            "C[a" + space.substr(64) + "]\n0 call_0 f\n0[{}]\n0 end\nC[</tool_call>]\n");
  EXPECT_EQ(parse(space + "<think>a</think>"), "C[" + space + "<think>a</think>]\n");
  EXPECT_EQ(parse("<think>a" + space + "</think>" + space + "b"),
            "R[a" + space.substr(64) + "]\nC[b]\n");
  AnswerParser parser(Thought::kMayBegin, true, "call_");
  Events events;
  for (int i = 0; i < 300'000; ++i) parser.feed("\n", events);  // quadratic time would show
  EXPECT_EQ(merged(events).size(), 1u);
}

TEST(AnswerParser, HeadsOfCallsAreBounded) {
  const std::string name(2000, 'n');
  EXPECT_EQ(read_call_head("{\"name\": \"" + name).kind, CallHead::Kind::kNone);
  EXPECT_EQ(read_call_head("{\"name\": \"" + name.substr(0, 500)).kind, CallHead::Kind::kPartial);
  EXPECT_EQ(read_call_head("{\"name\" ").kind, CallHead::Kind::kPartial);
  EXPECT_EQ(read_call_head("").kind, CallHead::Kind::kPartial);
  EXPECT_EQ(read_call_head("{\"name\": \"a\" x").kind, CallHead::Kind::kNone);
}

}  // namespace
}  // namespace orthrus
