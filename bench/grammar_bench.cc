// What the masks of constrained decoding cost for a vocabulary: the first answer to a schema, when
// nothing is known of it yet, and a later one.
//   orthrus_grammar_bench tokenizer.json
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "grammar/grammar_matcher.h"
#include "text/tokenizer.h"

namespace {

using namespace orthrus;

struct Case {
  const char* name;
  std::string schema;  // "": any object
  std::string answer;
  std::string gbnf = {};  // instead of a schema
};

/// CPU time of this thread: other programs on the machine do not count.
double milliseconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

std::shared_ptr<const TokenTrie> make_trie(const Tokenizer& tokenizer) {
  std::vector<std::string_view> tokens(static_cast<size_t>(tokenizer.vocab_size()));
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.has_token(id) && !tokenizer.is_special(id)) {
      tokens[static_cast<size_t>(id)] = tokenizer.token_bytes(id);
    }
  }
  return std::make_shared<const TokenTrie>(tokens);
}

/// A mask and a token in turn, as plain decoding asks for them.
void answer(const char* label, const std::shared_ptr<const Grammar>& grammar,
            const std::shared_ptr<const TokenTrie>& trie, const std::vector<int32_t>& ids) {
  std::vector<double> times;
  GrammarMatcher matcher(grammar, trie, {});
  for (const int32_t id : ids) {
    const double begin = milliseconds();
    matcher.mask();
    times.push_back(milliseconds() - begin);
    if (!matcher.accept(id)) {
      std::printf("    token %d is refused after %zu\n", id, times.size() - 1);
      return;
    }
  }
  double sum = 0;
  for (const double time : times) sum += time;
  std::sort(times.begin(), times.end());
  std::printf("    %-13s %4zu masks: mean %.4f ms, median %.4f, p90 %.4f, most %.3f%s\n", label,
              times.size(), sum / static_cast<double>(times.size()), times[times.size() / 2],
              times[times.size() * 9 / 10], times.back(), matcher.may_end() ? "" : " (unfinished)");
}

std::string records(int count) {
  std::string out = "{\n  \"items\": [\n";
  for (int i = 0; i < count; ++i) {
    out +=
        "    {\n      \"name\": \"Item number " + std::to_string(i) +
        ", a \\\"good\\\" one – für alle\",\n      \"price\": " + std::to_string(i * 7) +
        ".5,\n      \"tags\": [\"new\", \"cheap and cheerful\"],\n      \"kind\": \"tool\"\n    }" +
        (i + 1 < count ? ",\n" : "\n");
  }
  return out + "  ]\n}";
}

std::vector<Case> cases() {
  const std::string text =
      "The quick brown fox jumps over the lazy dog, and then it sleeps in the warm sun for hours.";
  std::string records_schema = R"({"type":"object","properties":{"items":{"type":"array","items":
    {"type":"object","properties":{"name":{"type":"string"},"price":{"type":"number"},
     "tags":{"type":"array","items":{"type":"string"}},"kind":{"enum":["tool","toy"]}},
     "required":["name","price","tags","kind"],"additionalProperties":false}}},
    "required":["items"],"additionalProperties":false})";
  std::string bounded = records_schema;
  bounded.replace(bounded.find(R"({"type":"string"})"), 17, R"({"type":"string","maxLength":500})");
  std::string long_ones = records_schema;
  long_ones.replace(long_ones.find(R"({"type":"string"})"), 17,
                    R"({"type":"string","maxLength":9000})");
  return {
      {"short extraction",
       R"({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},
               "required":["name","age"],"additionalProperties":false})",
       R"({"name": "Ada Lovelace", "age": 36})"},
      {"records", records_schema, records(10)},
      {"records, maxLength 500", bounded, records(10)},
      {"records, maxLength 9000", long_ones, records(10)},
      {"pattern with .*", R"({"type":"string","pattern":"^[A-Z].*\\.$"})", "\"" + text + "\""},
      {"any object", "", records(10)},
      {"text in which <tag> begins a call", "", text + " " + text + "\n<tag>{\"a\": \"b\"}</tag>",
       R"(root ::= ([^<] | part* "<" ([^<t] | "t" ([^<a] | "a" ([^<g] | "g" ([^<>] | ">" call)))))* part*
              part ::= "<" ("t" ("a" ("g")?)?)?
              call ::= %json {"type": "object", "additionalProperties": {"type": "string"}} "</tag>")"}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s tokenizer.json\n", argv[0]);
    return 2;
  }
  const Tokenizer tokenizer = Tokenizer::load(argv[1]);
  double begin = milliseconds();
  const auto trie = make_trie(tokenizer);
  std::printf("%d tokens, %u nodes, built in %.0f ms\n", trie->vocab_size(), trie->size(),
              milliseconds() - begin);
  for (const Case& test : cases()) {
    begin = milliseconds();
    const auto grammar = !test.gbnf.empty()    ? parse_gbnf(test.gbnf)
                         : test.schema.empty() ? json_object_grammar()
                                               : parse_json_schema(test.schema);
    const double compiled = milliseconds() - begin;
    begin = milliseconds();
    grammar->local_masks(trie);
    std::printf("%s: compiled in %.2f ms, prepared in %.2f, %zu states\n", test.name, compiled,
                milliseconds() - begin, grammar->states());
    const std::vector<int32_t> ids = tokenizer.encode(test.answer);
    answer("first answer", grammar, trie, ids);
    answer("next answer", grammar, trie, ids);
  }
}
