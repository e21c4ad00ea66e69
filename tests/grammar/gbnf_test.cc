#include <gtest/gtest.h>

#include "grammar/grammar_test_support.h"
#include "text/tokenizer_test_support.h"

namespace orthrus {
namespace {

struct Case {
  std::string_view grammar;
  std::vector<std::string_view> accepted;
  std::vector<std::string_view> refused;
};

void check(const Case& test) {
  const auto grammar = parse_gbnf(test.grammar);
  for (const auto text : test.accepted) {
    EXPECT_TRUE(matches(grammar, text)) << test.grammar << " should accept " << text;
  }
  for (const auto text : test.refused) {
    EXPECT_FALSE(matches(grammar, text)) << test.grammar << " should refuse " << text;
  }
}

using namespace std::string_view_literals;

TEST(Gbnf, Literals) {
  check({R"(root ::= "a\n\"\\\x41\u00e9\U0001F600")",
         {"a\n\"\\A\u00e9\U0001F600"},
         {"a", "", "a\n\"\\Ae"}});
  check({R"(root ::= "")", {""}, {"a"}});
  check({"root ::= \"\\x00\"", {"\0"sv}, {"", "0"}});
}

TEST(Gbnf, ClassesAreOfCodePoints) {
  check({"root ::= [a-cx_-]", {"a", "b", "c", "x", "_", "-"}, {"d", "", "aa", "w"}});
  check({"root ::= [^a-c\\]]",
         {"d", "\u00e9", "\u20ac", "\U0001F600", "\n"},
         {"a", "]", "\xff", "\x80", ""}});
  check({"root ::= [\u00e0-\u00ff]+", {"\u00e0", "\u00ff\u00e9"}, {"\u0100", "\u00df", "a"}});
  check({"root ::= [\\u0700-\\U00010fff]",
         {"\u0700", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U00010fff"},
         {"\u06ff", "\U00011000", "\xed\xa0\x80"}});
  check({"root ::= .",
         {"a", "\n", "\U0010ffff"},
         {"", "ab", "\xf4\x90\x80\x80", "\xc0\x80", "\xed\xbf\xbf"}});
}

TEST(Gbnf, Repeats) {
  check({"root ::= \"a\"*", {"", "a", "aaaa"}, {"b", "ab"}});
  check({"root ::= \"ab\"+", {"ab", "abab"}, {"", "aba"}});
  check({"root ::= \"a\"? \"b\"", {"b", "ab"}, {"a", "aab"}});
  check({"root ::= [0-9]{3}", {"123"}, {"12", "1234"}});
  check({"root ::= [0-9]{2,}", {"12", "12345"}, {"1"}});
  check({"root ::= [0-9]{0,2} \"x\"{ 1 , 2 }", {"x", "1x", "12xx"}, {"123x", "1", "1xxx"}});
  check({"root ::= (\"a\" | \"b\"?){2,3} \"c\"{0}", {"", "a", "ab", "bba"}, {"abab", "c"}});
  check({"root ::= (\"a\"{0,2}){2}", {"", "aaaa"}, {"aaaaa"}});
}

TEST(Gbnf, SpacesLinesAndComments) {
  check({"# begins\nroot ::= ( # inside\n \"a\"\n | \"b\" )\r\n  # between\n\nx ::= \"x\" # end",
         {"a", "b"},
         {"x"}});
  check({"root ::= \"a\" |\n  \"b\"\n  | x\nx ::=\n  \"x\"", {"a", "b", "x"}, {"ab"}});
  check({"root::=x y\nx::=\"x\"\ny::=\"y\"|", {"xy", "x"}, {"y"}});
}

TEST(Gbnf, RecursionAndAmbiguity) {
  check({"root ::= \"(\" root \")\" | \"(\" root \"]\" | \"\"",
         {"", "()", "((]]", "((((]])]"},
         {"(", ")", "(()"}});
  check({"root ::= \"a\" root root | \"a\" | \"\"", {"", "aaaaaaaa"}, {"b"}});
  check({"root ::= x | y\nx ::= \"a\" x \"b\" | \"a\"\ny ::= \"a\" y \"c\" | \"a\"",
         {"a", "aab", "aac", "aaabb"},
         {"aabc", "ab"}});
  check({"root ::= a \"!\"\na ::= b? c\nb ::= \"b\"\nc ::= \"\" | b a",
         {"!", "b!", "bb!", "bbbbb!"},
         {"b", "c!"}});
}

TEST(Gbnf, EveryWayToReadHalfOfTheTextIsKeptInLittleSpace) {
  // 2^400 stacks.
  const auto grammar =
      parse_gbnf("root ::= x | y\nx ::= \"(\" root \")\" | \"1\"\ny ::= \"(\" root \"]\" | \"1\"");
  std::string text(400, '(');
  text += '1';
  for (int i = 0; i < 400; ++i) text += i % 3 ? ')' : ']';
  EXPECT_TRUE(matches(grammar, text));
}

TEST(Gbnf, DeepNestingEndsWhereItCanStillBeClosed) {
  const auto grammar = parse_gbnf(
      "root ::= \"[\" (root | \"x\" x) \"]\" y\nx ::= z \"x\"\nz ::= \"(\" z \")\" | \"1\"\ny ::= "
      "\"\"");
  GrammarMatcher matcher(grammar, byte_tokens(), std::array{kByteEnd});
  int depth = 0;
  while (matcher.accept('[')) ++depth;
  EXPECT_GT(depth, 900);
  EXPECT_LE(depth, Grammar::kMaxDepth);
  EXPECT_FALSE(allowed(matcher.mask(), '['));
  EXPECT_TRUE(matcher.accept('x'));
  while (matcher.accept('(')) ++depth;
  for (int steps = 0; !matcher.may_end(); ++steps) {
    ASSERT_LT(steps, 5000);
    bool found = false;
    for (const char c : {')', '1', 'x', ']'}) found = found || matcher.accept(c);
    ASSERT_TRUE(found);
  }
}

TEST(Gbnf, GrammarsPeopleWrite) {
  const std::string_view arithmetic = R"g(
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)g";
  check({arithmetic, {"x+1=2\n", "(a*(b-3))/4 = y\n1=1\n"}, {"x+=1\n", "1+1\n", "(1=1\n"}});
  const std::string_view chess = R"g(
# moves in pairs, numbered
root    ::= "1. " move " " move "\n" ([1-9] [0-9]? ". " move " " move "\n")+
move    ::= (pawn | nonpawn | castle) [+#]?
nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
pawn    ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
castle  ::= "O-O" "-O"?
)g";
  check({chess,
         {"1. e4 e5\n2. Nf3 Nc6\n", "1. d4 Nf6\n2. exd5 O-O-O\n13. e8=Q+ Raxb8#\n"},
         {"1. e4\n", "1. e9 e5\n2. a1 a1\n"}});
  const std::string_view json = R"g(
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)g";
  check({json,
         {R"({"a": [1, -2.5e3, "x\"\u00e9"], "b": {"c": null}})"},
         {"[1]", R"({"a" 1})", R"({"a": 01})"}});
}

TEST(Gbnf, SchemasWithin) {
  check({R"g(root ::= "<" ( %json {"type": "object", "properties": {"a}\"": {"enum": ["}", 1]}},
    "required": ["a}\""]} | x) ">"{2}  # {
x ::= %json{"type": "integer", "minimum": 5}? %json { "const": "\\" })g",
         {R"(<{"a}\"": "}"}>>)", R"(<{"a}\"":1}>>)", R"(<17"\\">>)", R"(<"\\">>)"},
         {R"(<{"a": 1}>>)", R"(<4"\\">>)", "<{}>>", R"(<17>>)", R"(<{"a}\"":1}>)"}});
  // "#" is the schema that it stands in.
  check({R"g(root ::= "a" a | "b" b
a ::= %json {"type": "array", "items": {"$ref": "#"}}
b ::= %json {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/c"}],
             "$defs": {"c": {"type": "object", "additionalProperties": {"$ref": "#"}}}}
)g",
         {"a[[], [[]]]", "bnull", R"(b{"x": {"y": null}})"},
         {"anull", "a[null]", "b[]", R"(b{"x": 1})"}});
}

TEST(Gbnf, ErrorsOfSchemasNameBothPlaces) {
  auto error = [](std::string_view text) { return usage_error([&] { parse_gbnf(text); }); };
  EXPECT_EQ(error("root ::= x\nx ::= \"a\" %json {\"items\": {\"not\": {}}}"),
            "grammar: line 2, column 11: %json: #/items: keyword \"not\" is not supported");
  EXPECT_EQ(error("root ::= %json {\"pattern\": \"a(\"}"),
            "grammar: line 1, column 10: %json: #/pattern: line 1, column 3: expected \")\", found "
            "the end");
  EXPECT_EQ(error("root ::= %json {\"anyOf\": [{\"$ref\": \"#\"}]}"),
            "grammar: line 1, column 10: %json: #: left recursion: # -> #");
  EXPECT_EQ(error("root ::= %json {\"a\": tru}"),
            "grammar: line 1, column 10: %json: not valid JSON (at byte 10)");
  EXPECT_EQ(error("root ::= %json {\"a\": {}"),
            "grammar: line 1, column 16: the JSON schema does not end");
  EXPECT_EQ(error("root ::= %json {\"a\": \"}"),
            "grammar: line 1, column 16: the JSON schema does not end");
  EXPECT_EQ(error("root ::= %json true"),
            "grammar: line 1, column 16: expected a JSON schema: an object, found \"true\"");
  EXPECT_EQ(error("root ::= %regex"),
            "grammar: line 1, column 10: expected \"%json\", found \"%regex\"");
  std::string deep = "root ::= %json ";
  for (int i = 0; i < 300; ++i) deep += "{\"items\":";
  EXPECT_EQ(error(deep + "{}" + std::string(300, '}')),
            "grammar: line 1, column 10: %json: nested deeper than 200 levels");
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  auto error = [](std::string_view text) { return usage_error([&] { parse_gbnf(text); }); };
  EXPECT_EQ(error(""), "grammar: no rule \"root\"");
  EXPECT_EQ(error("root = \"a\""),
            "grammar: line 1, column 6: expected \"::=\", found \"= \"a\"\"");
  EXPECT_EQ(error("root ::= \"a"),
            "grammar: line 1, column 12: expected '\"' at the end of the literal, found the end");
  EXPECT_EQ(error("root ::= \"a\nroot"),
            "grammar: line 1, column 12: expected no line end, found \"?root\"");
  EXPECT_EQ(error("root ::= a\n  | b\na ::= \"a\""),
            "grammar: line 2, column 5: rule \"b\" is not defined");
  EXPECT_EQ(error("root ::= \"a\"\nroot ::= \"b\""),
            "grammar: line 2, column 1: rule \"root\" again");
  EXPECT_EQ(error("root ::= [b-a]"), "grammar: line 1, column 11: range is backwards");
  EXPECT_EQ(error("root ::= [a"),
            "grammar: line 1, column 12: expected \"]\" at the end of the class, found the end");
  EXPECT_EQ(error("root ::= (\"a\""), "grammar: line 1, column 14: expected \")\", found the end");
  EXPECT_EQ(error("root ::= \"a\"{3,2}"), "grammar: line 1, column 18: {3,2} is backwards");
  EXPECT_EQ(error("root ::= \"a\"{99999}"),
            "grammar: line 1, column 18: repeated more than 32768 times");
  EXPECT_EQ(error("root ::= \"\\q\""),
            "grammar: line 1, column 12: expected an escape: one of nrt\"\\[]-^ or x, u, U, found "
            "\"q\"\"");
  EXPECT_EQ(error("root ::= \"\\uD800\""), "grammar: line 1, column 17: U+D800 is no character");
  EXPECT_EQ(error("root ::= \"\xff\""), "grammar: line 1, column 11: not valid UTF-8");
  EXPECT_EQ(error("root ::= <tool>"),
            "grammar: line 1, column 10: expected a new line, found \"<tool>\"");
}

TEST(Gbnf, WhatHasNoBoundIsRefused) {
  auto error = [](std::string_view text) { return usage_error([&] { parse_gbnf(text); }); };
  EXPECT_EQ(error("root ::= root \"a\" | \"b\""),
            "grammar: line 1, column 1: left recursion: root -> root");
  EXPECT_EQ(error("root ::= \"x\" a\na ::= b \"a\"\nb ::= e c\nc ::= a | \"c\"\ne ::= \"e\"?"),
            "grammar: line 1, column 14: left recursion: a -> b -> c -> a");
  EXPECT_EQ(error("root ::= \"a\" root"), "grammar: no finite text satisfies it");
  EXPECT_EQ(error("root ::= ((([a-z]{1,30000} \"-\"){1,30000} \"_\"){1,30000} \"x\"){1,30000}"),
            "");
  EXPECT_NE(error("root ::= " +
                  [] {
                    std::string text;
                    for (int i = 0; i < 40; ++i) text += "[a-z]{30000} ";
                    return text;
                  }())
                .find("grammar: too large"),
            std::string::npos);
  EXPECT_EQ(error("root ::= " + std::string(65, '(')),
            "grammar: line 1, column 74: groups nested more than 64 deep");
  EXPECT_EQ(error("root ::= [ab]* \"a\" [ab]{40}"), "");
}

TEST(Gbnf, LargeOnesAreRefusedAtABoundedCost) {
  auto repeated = [](std::string_view text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
  };
  std::string rules = "root ::= r0\n";
  for (int i = 0; i < 30; ++i) {
    const std::string n = std::to_string(i);
    rules += "r" + n + " ::= ([a-z]{0,1000} | [a-y ]{0,1000} | \"q\"{0,1000})* \"" + n + "\"\n";
  }
  std::string classes = "root ::= (";
  for (char c = 'a'; c < 'p'; ++c) {
    classes += std::string("[") + c + "-z " + static_cast<char>(c + 13) + "]{0,3000} | ";
  }
  for (const std::string& text :
       {rules, "root ::= (" + repeated("\"\" ", 100'000) + "\"a\"){32768}",
        classes + "\"a\"{0,30000})* \"!\""}) {
    std::string message;
    const double seconds = cpu_seconds([&] { message = usage_error([&] { parse_gbnf(text); }); });
    EXPECT_NE(message.find("grammar: too large"), std::string::npos) << text.substr(0, 60);
    EXPECT_LT(seconds, 2 * kSlowBuild) << text.substr(0, 60);  // measured: 0.3 to 0.8 s
  }
}

TEST(Gbnf, RulesThatMayBeEmptyAreFoundInOneGo) {
  // Each of 200 is looked at once, however many rules wait for it.
  std::string text = "root ::= (c0";
  for (int i = 1; i < 200; ++i) text += " | c" + std::to_string(i);
  text += ") \"x\"\n";
  for (int i = 0; i < 200; ++i) text += "c" + std::to_string(i) + " ::= [a-z]{0,100}\n";
  std::shared_ptr<const Grammar> grammar;
  EXPECT_LT(cpu_seconds([&] { grammar = parse_gbnf(text); }), 0.2 * kSlowBuild);  // measured: 8 ms
  EXPECT_TRUE(matches(grammar, "x"));
  EXPECT_TRUE(matches(grammar, "abcx"));
  EXPECT_FALSE(matches(grammar, "abc"));
}

TEST(Gbnf, ManyStatesAtOnceAreStillCorrect) {
  // Its deterministic automaton has 2^30 states.
  const auto grammar = parse_gbnf("root ::= [ab]* \"a\" [ab]{29} \"!\"");
  std::string text = "abbaabab";
  while (text.size() < 80) text += text;
  text.resize(80);
  text[80 - 30] = 'a';
  EXPECT_TRUE(matches(grammar, text + "!"));
  text[80 - 30] = 'b';
  EXPECT_FALSE(matches(grammar, text + "!"));
}

}  // namespace
}  // namespace orthrus
