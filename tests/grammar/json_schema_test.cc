#include <gtest/gtest.h>

#include "grammar/grammar_test_support.h"

namespace orthrus {
namespace {

struct Case {
  std::string_view schema;
  std::vector<std::string_view> accepted;
  std::vector<std::string_view> refused;
};

void check(const Case& test) {
  const auto grammar = parse_json_schema(test.schema);
  for (const auto text : test.accepted) {
    EXPECT_TRUE(matches(grammar, text)) << test.schema << " should accept " << text;
  }
  for (const auto text : test.refused) {
    EXPECT_FALSE(matches(grammar, text)) << test.schema << " should refuse " << text;
  }
}

std::string error(std::string_view schema) {
  return usage_error([&] { parse_json_schema(schema); });
}

TEST(JsonSchema, AnyValue) {
  for (const std::string_view any : {"{}", "true", R"({"description": "any"})"}) {
    check({any,
           {"null", "true", "false", "0", "-1.5e+10", "\"\"", "[]", "{}",
            R"({"a": [1, {"b":null}]})", "[1,\n  2\n]", "[ ]", "[\n\t1]",
            R"("\ud83d\ude00 \u00e9 \" \\ \/ \b")", "\"\u00e9\u20ac\U0001F600\""},
           {"",
            " 1",
            "1 ",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "1e100",
            "nul",
            "[1,]",
            "[,1]",
            "{1:2}",
            R"({"a":1,})",
            "\"\n\"",
            "\"\t\"",
            R"("\x")",
            R"("\u12")",
            R"("\ud800")",
            R"("\ud800\u0041")",
            R"("\udc00")",
            "\"\xff\"",
            "\"\xed\xa0\x80\"",
            "[1,  2]",
            "[1,\n\n2]",
            "'a'",
            R"({"a" : 1})",
            "\"",
            "[1 2]",
            "12345678901234567890",
            "[1,\n                         2]"}});
  }
}

TEST(JsonSchema, TypesAndLists) {
  check({R"({"type": "null"})", {"null"}, {"0", "\"null\""}});
  check({R"({"type": "boolean"})", {"true", "false"}, {"null", "True"}});
  check({R"({"type": "number"})", {"1", "-0", "0.5", "1E-5"}, {"\"1\"", "NaN", "Infinity"}});
  check({R"({"type": "integer"})", {"1", "0", "-12"}, {"1.0", "-0", "1e3", "-", "00"}});
  check({R"({"type": ["string", "null"], "minLength": 1})", {"null", "\"a\""}, {"\"\"", "1"}});
  check({R"({"type": ["integer", "string"], "minimum": 5, "maxLength": 1})",
         {"5", "\"\"", "\"a\""},
         {"4", "\"ab\""}});
  check({R"({"minimum": 5})", {"5", "7.5"}, {"4", "\"a\""}});
}

TEST(JsonSchema, ObjectsInDeclaredOrder) {
  const std::string_view strict = R"({"type": "object", "properties": {"z": {"type": "integer"},
      "a\"b": {"type": "boolean"}}, "required": ["z", "a\"b"], "additionalProperties": false})";
  check({strict,
         {R"({"z":1,"a\"b":true})", "{\n  \"z\": 1,\n  \"a\\\"b\": false\n}"},
         {"{}", R"({"a\"b":true,"z":1})", R"({"z":1})", R"({"z":1,"a\"b":true,"c":1})",
          R"({"z":1 ,"a\"b":true})", "[]"}});
  const std::string_view optional =
      R"({"properties": {"a": {"const": 1}, "b": {"const": 2}, "c": {"const": 3},
      "d": {"const": 4}}, "required": ["c"]})";
  check({optional,
         {R"({"c":3})", R"({"a":1,"c":3})", R"({"b":2,"c":3,"d":4})",
          R"({"a":1, "b":2, "c":3, "d":4})"},
         {"{}", R"({"a":1})", R"({"c":3,"a":1})", R"({,"c":3})", R"({"c":3,})", R"({"d":4})",
          R"({"c":3,"e":1})"}});
  check({R"({"properties": {"a": {"const": 1}, "b": {"const": 2}}})",
         {"{}", "{ }", R"({"a":1})", R"({"b":2})", R"({"a":1,"b":2})"},
         {R"({"b":2,"a":1})", R"({"a":1,"a":1})"}});
  check({R"({"type": "object", "additionalProperties": false})", {"{}", "{ }"}, {R"({"a":1})"}});
  check({R"({"type": "object"})", {"{}", R"({"a":1,"b":{}})"}, {"[]", "{a:1}"}});
}

TEST(JsonSchema, AdditionalProperties) {
  check({R"({"type": "object", "additionalProperties": {"type": "integer"}})",
         {"{}", R"({"x":1})", R"({"x":1,"y\n":2})"},
         {R"({"x":"1"})"}});
  check({R"({"properties": {"ab": {"const": 1}, "a\u00e9": {"const": 2}}, "required": ["ab"],
            "additionalProperties": {"type": "string"}})",
         {R"({"ab":1})", R"({"ab":1,"a":"x"})", R"({"ab":1,"abc":"x","":"y","b":"z"})",
          "{\"ab\":1,\"a\u00e9\":2,\"a\u00e9\u00e9\":\"q\"}", "{\"ab\":1,\"a\u00e8\":\"q\"}"},
         {R"({"a":"x","ab":1})", R"({"ab":1,"ab":"x"})", "{\"ab\":1,\"a\u00e9\":\"x\"}",
          R"({"ab":1,"\u0061b":"x"})"}});
  check({R"({"type": "object", "required": ["k"], "additionalProperties": true})",
         {R"({"k":[1]})", R"({"k":0,"l":1})"},
         {"{}", R"({"l":1})", R"({"k":0,"k":1})"}});
}

TEST(JsonSchema, Arrays) {
  check({R"({"type": "array"})", {"[]", "[1,\"a\"]"}, {"{}"}});
  check({R"({"items": {"type": "integer"}, "minItems": 1, "maxItems": 3})",
         {"[1]", "[1,2, 3]"},
         {"[]", "[1,2,3,4]", "[\"a\"]"}});
  check({R"({"items": {"const": 0}, "minItems": 2})", {"[0,0]", "[0,0,0]"}, {"[]", "[0]"}});
  check({R"({"type": "array", "maxItems": 0})", {"[]", "[ ]"}, {"[1]"}});
  check({R"({"prefixItems": [{"const": 1}, {"const": 2}], "items": {"const": 0}})",
         {"[]", "[1]", "[1,2]", "[1,2,0,0]"},
         {"[2]", "[1,0]", "[0]"}});
  check(
      {R"({"prefixItems": [{"const": 1}, {"const": 2}, {"const": 3}], "items": false, "minItems": 2})",
       {"[1,2]", "[1,2,3]"},
       {"[1]", "[]", "[1,2,3,4]"}});
  check({R"({"prefixItems": [{"const": 1}, {"const": 2}], "maxItems": 1})",
         {"[]", "[1]"},
         {"[1,2]"}});
  check({R"({"items": {"type": "array", "items": {"enum": ["x", null]}}})",
         {"[]", "[[]]", R"([["x",null], []])"},
         {"[1]", "[[1]]"}});
}

TEST(JsonSchema, EnumAndConst) {
  check(
      {R"({"enum": ["red", "redder", 1, 1.5, null, true, {"a": [1]}, []]})",
       {"\"red\"", "\"redder\"", "1", "1.5", "null", "true", R"({"a": [1]})", R"({"a":[1]})", "[]"},
       {"\"re\"", "2", "{}", "[1]"}});
  check({R"({"type": "string", "enum": ["a", 1, "\u00e9\n"]})", {"\"a\"", "\"\u00e9\\n\""}, {"1"}});
  check({R"({"const": {"k": "v"}})", {R"({"k":"v"})"}, {R"({"k":"w"})"}});
  check({R"({"type": "integer", "enum": [1, 2.0, 2.5]})", {"1", "2.0"}, {"2.5"}});
}

TEST(JsonSchema, AnyOfAndReferences) {
  check(
      {R"({"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}]})",
       {"5", R"({"a":null})"},
       {"null", "{}"}});
  const std::string_view list =
      R"({"$defs": {"node": {"type": "object", "properties": {"value": {"type": "integer"},
      "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}, "required": ["value", "next"],
      "additionalProperties": false}}, "$ref": "#/$defs/node", "description": "a list"})";
  check({list,
         {R"({"value":1,"next":null})", R"({"value":1,"next":{"value":2,"next":null}})"},
         {R"({"value":1})", R"({"value":1,"next":{}})"}});
  check(
      {R"({"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}, "required": ["children"]})",
       {R"({"children":[]})", R"({"children":[{"children":[]},{"children":[]}]})"},
       {R"({"children":[1]})"}});
  check(
      {R"({"definitions": {"a/b~c": {"const": 7}}, "properties": {"x": {"$ref": "#/definitions/a~1b~0c"},
            "y": {"$ref": "#/properties/x"}}})",
       {R"({"x":7,"y":7})"},
       {R"({"x":8})"}});
  check({R"({"allOf": [{"type": "integer"}], "default": 3})", {"1"}, {"\"a\""}});
}

TEST(JsonSchema, StringLengthsCountCharacters) {
  check({R"({"type": "string", "minLength": 2, "maxLength": 3})",
         {"\"ab\"", "\"\u00e9\U0001F600\u20ac\"", R"("\n\u0041")", R"("\ud83d\ude00x")"},
         {"\"a\"", "\"abcd\"", "\"\u00e9\"", R"("\ud83d\ude00")", "\"ab\n\""}});
  check({R"({"minLength": 3})", {"\"abc\"", "\"abcdefgh\""}, {"\"ab\""}});
  check({R"({"maxLength": 0})", {"\"\""}, {"\"a\""}});
}

TEST(JsonSchema, Patterns) {
  check({R"({"pattern": "^[a-z]{2,3}\\d+$"})",
         {"\"ab1\"", "\"abc123\""},
         {"\"a1\"", "\"abcd1\"", "\"ab\"", "1"}});
  check({R"({"pattern": "b+"})", {"\"b\"", "\"abba\"", "\"\\\"b\\n\""}, {"\"a\"", "\"\""}});
  check({R"({"pattern": "^a|b$"})", {"\"axx\"", "\"xxb\""}, {"\"xa\"", "\"bx\""}});
  check({R"({"pattern": "^(?:x|y\\.z)*?$"})", {"\"\"", "\"xy.zx\""}, {"\"yaz\""}});
  check({R"({"pattern": "^[^\"\\\\]\\\\\"$"})", {R"("a\\\"")"}, {R"("\"\\\"")", R"("a\"")"}});
  check({R"({"pattern": "^\\w\\W\\s\\S$"})",
         {"\"a- b\"", "\"_\u00e9\\n!\""},
         {"\"--  \"", "\"a-b\""}});
  check({R"({"pattern": "^.\\u00e9[\\u0400-\\u04ff\\-]$"})",
         {"\"\U0001F600\u00e9\u0416\"", "\"x\u00e9-\""},
         {"\"\\n\u00e9\u0416\"", "\"x\u00e9x\""}});
  check({R"({"pattern": "^(?<year>[0-9]{4})-[0-9]{2}$"})", {"\"2024-01\""}, {"\"2024-1\""}});
}

TEST(JsonSchema, Formats) {
  check({R"({"format": "date"})",
         {"\"2024-02-29\"", "\"2000-02-29\"", "\"1999-12-31\"", "\"2023-04-30\""},
         {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-13-01\"", "\"2023-1-01\"",
          "\"2023-00-10\""}});
  check({R"({"format": "time"})",
         {"\"23:59:59Z\"", "\"00:00:00.123+05:30\""},
         {"\"24:00:00Z\"", "\"12:00Z\"", "\"12:00:00\""}});
  check({R"({"type": "string", "format": "date-time"})",
         {"\"2024-05-06T07:08:09Z\"", "\"2024-05-06T07:08:09.5-08:00\""},
         {"\"2024-05-06\"", "\"2024-05-06 07:08:09Z\""}});
  check({R"({"format": "duration"})",
         {"\"P3Y6M4DT12H30M5S\"", "\"PT1M\"", "\"P4W\"", "\"P1DT1S\""},
         {"\"P\"", "\"PT\"", "\"P1S\"", "\"1D\"", "\"P1DT\""}});
  check({R"({"format": "email"})",
         {"\"a.b+c@example.com\"", "\"x@localhost\""},
         {"\"a@\"", "\"@b.c\"", "\"a b@c.d\"", "\".a@b.c\"", "\"a@b..c\""}});
  check({R"({"format": "hostname"})",
         {"\"example.com\"", "\"a-b.c\"", "\"x\""},
         {"\"-a.b\"", "\"a-.b\"", "\"a..b\"", "\"a_b\"", "\"\""}});
  check({R"({"format": "ipv4"})",
         {"\"127.0.0.1\"", "\"255.255.255.255\""},
         {"\"256.0.0.1\"", "\"1.2.3\"", "\"01.2.3.4\""}});
  check({R"({"format": "ipv6"})",
         {"\"::\"", "\"::1\"", "\"1:2:3:4:5:6:7:8\"", "\"fe80::a:b\"", "\"1::8\"",
          "\"::ffff:1.2.3.4\"", "\"1:2:3:4:5:6::\"", "\"1:2:3:4:5:6:7::\""},
         {"\":\"", "\"1:2:3\"", "\"1::2::3\"", "\"12345::\"", "\"1:2:3:4:5:6:7:8:9\"",
          "\"1:2:3:4:5:6:7::8\"", "\"g::\""}});
  check({R"({"format": "uuid"})",
         {"\"123e4567-e89b-12d3-a456-426614174000\""},
         {"\"123e4567e89b12d3a456426614174000\"", "\"123e4567-e89b-12d3-a456-42661417400g\""}});
}

TEST(JsonSchema, IntegerRangesAreExact) {
  for (const auto& [low, high, multiple] : std::vector<std::array<int64_t, 3>>{{0, 9, 1},
                                                                               {-15, 123, 1},
                                                                               {-120, -7, 1},
                                                                               {99, 101, 1},
                                                                               {1000, 2345, 1},
                                                                               {-30, 40, 7},
                                                                               {0, 999, 13},
                                                                               {-900, 900, 250},
                                                                               {5, 5, 1}}) {
    const auto grammar = json_schema_grammar(nlohmann::ordered_json{
        {"type", "integer"}, {"minimum", low}, {"maximum", high}, {"multipleOf", multiple}});
    for (int64_t value = low - 150; value <= high + 150; ++value) {
      ASSERT_EQ(matches(grammar, std::to_string(value)),
                value >= low && value <= high && value % multiple == 0)
          << value << " in " << low << ".." << high << " by " << multiple;
    }
    EXPECT_FALSE(matches(grammar, "-0"));
    EXPECT_FALSE(matches(grammar, "00"));
  }
  check({R"({"type": "integer", "exclusiveMinimum": 3, "exclusiveMaximum": 5.5})",
         {"4", "5"},
         {"3", "6"}});
  check({R"({"type": "integer", "minimum": -2.5, "maximum": -0.5})", {"-2", "-1"}, {"-3", "0"}});
  check({R"({"type": "integer", "minimum": 2.5})", {"3", "9223372036854775806"}, {"2", "-3"}});
  check({R"({"type": "integer", "minimum": 1, "maximum": 9223372036854775807})",
         {"1", "9223372036854775806"},
         {"0"}});
  check({R"({"type": "number", "minimum": -1e30, "maximum": 1e20})",
         {"-5", "999999999999.5"},
         {"1e3"}});
}

TEST(JsonSchema, NumberRangesAreExact) {
  struct Range {
    const char* schema;
    double low, high;
    bool low_exclusive, high_exclusive;
  };
  for (const Range& range :
       {Range{R"({"type":"number","minimum":-1.25,"maximum":10.5})", -1.25, 10.5, false, false},
        Range{R"({"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1})", 0, 1, true, true},
        Range{R"({"type":"number","minimum":0.05,"exclusiveMaximum":0.5})", 0.05, 0.5, false, true},
        Range{R"({"type":"number","exclusiveMinimum":-11.5,"maximum":-2})", -11.5, -2, true, false},
        Range{R"({"type":"number","minimum":9.99,"maximum":1e2})", 9.99, 100, false, false}}) {
    const auto grammar = parse_json_schema(range.schema);
    for (int thousandths = -12100; thousandths <= 101000; thousandths += 5) {
      const double value = thousandths / 1000.0;
      const std::string text = nlohmann::json(value).dump();
      const bool inside = (range.low_exclusive ? value > range.low : value >= range.low) &&
                          (range.high_exclusive ? value < range.high : value <= range.high);
      ASSERT_EQ(matches(grammar, text), inside) << text << " in " << range.schema;
    }
  }
  check({R"({"type": "number", "multipleOf": 0.01, "minimum": 0})",
         {"0", "1.5", "19.99"},
         {"1.999", "-1", "1e2"}});
  check({R"({"type": "number", "multipleOf": 5})", {"0", "15", "-5"}, {"3", "5.0"}});
  check({R"({"type": "number", "minimum": 3, "exclusiveMinimum": 3})",
         {"3.0001", "4"},
         {"3", "3.0"}});
}

TEST(JsonSchema, JsonObject) {
  EXPECT_TRUE(matches(json_object_grammar(), R"({"a": [1, {"b": "c"}]})"));
  for (const std::string_view text : {"[]", "1", "", "{} ", " {}", "{\"a\"}"}) {
    EXPECT_FALSE(matches(json_object_grammar(), text)) << text;
  }
}

TEST(JsonSchema, DeepNestingStaysClosable) {
  GrammarMatcher matcher(json_object_grammar(), byte_tokens(), std::array{kByteEnd});
  auto accept = [&](std::string_view text) {
    const int64_t before = matcher.size();
    for (const char c : text) {
      if (matcher.accept(static_cast<unsigned char>(c))) continue;
      matcher.rollback(matcher.size() - before);
      return false;
    }
    return true;
  };
  std::string closing = "}";
  ASSERT_TRUE(accept("{\"a\":"));
  for (;;) {
    if (accept("[")) {
      closing += ']';
    } else {
      break;
    }
    if (!accept("{\"a\":")) break;
    closing += '}';
  }
  EXPECT_GT(closing.size(), 300u);
  ASSERT_TRUE(closing.back() == ']' || accept("1"));
  for (; !closing.empty(); closing.pop_back()) ASSERT_TRUE(accept(std::string(1, closing.back())));
  EXPECT_TRUE(matcher.may_end());
}

TEST(JsonSchema, IsCheckedWithoutBeingCompiled) {
  using Json = nlohmann::ordered_json;
  const auto states = [](const char* schema) {
    return check_json_schema(Json::parse(schema), "x");
  };
  EXPECT_GT(states(R"({"type": "string", "maxLength": 1000})"), 1000u);
  EXPECT_LT(states(R"({"type": "object"})"), 1000u);
  EXPECT_EQ(usage_error([&] { states(R"({"properties": {"a": {"if": true}}})"); }),
            "x: #/properties/a: keyword \"if\" is not supported");
}

TEST(JsonSchema, WhatIsNotSupportedIsNamed) {
  EXPECT_EQ(error(R"({"properties": {"a": {"not": {}}}})"),
            "json_schema: #/properties/a: keyword \"not\" is not supported");
  for (const char* keyword :
       {"oneOf", "not", "if", "patternProperties", "minProperties", "propertyNames", "uniqueItems",
        "contains", "dependentRequired", "unevaluatedProperties", "nullable", "$dynamicRef"}) {
    EXPECT_EQ(error(nlohmann::json{{keyword, 1}}.dump()),
              std::string("json_schema: #: keyword \"") + keyword + "\" is not supported");
  }
  EXPECT_EQ(error(R"({"items": {"anyOf": [{}, {"format": "uri"}]}})"),
            "json_schema: #/items/anyOf/1: format \"uri\" is not supported");
  EXPECT_EQ(error(R"({"$ref": "#/a", "a": 1})"), "json_schema: #: keyword \"a\" is not supported");
  EXPECT_EQ(error(R"({"$ref": "#/$defs/b", "$defs": {"a": {}}})"),
            "json_schema: #: \"$ref\": \"#/$defs/b\" is not there");
  EXPECT_EQ(error(R"({"$ref": "http://x/y"})"),
            "json_schema: #: \"$ref\": \"http://x/y\" is not supported, only \"#\" and \"#/...\"");
  EXPECT_EQ(error(R"({"$ref": "#", "type": "object"})"),
            "json_schema: #: keyword \"type\" is not supported beside \"$ref\"");
  EXPECT_EQ(error(R"({"anyOf": [{}], "type": "string"})"),
            "json_schema: #: keyword \"type\" is not supported beside \"anyOf\"");
  EXPECT_EQ(error(R"({"allOf": [{}, {}]})"),
            "json_schema: #: keyword \"allOf\" is supported only with one schema");
  EXPECT_EQ(error(R"({"type": "text"})"),
            "json_schema: #: \"type\" must be null, boolean, object, array, number, integer, "
            "string, or a list of them");
  EXPECT_EQ(error(R"j({"pattern": "(?=a)"})j"),
            "json_schema: #/pattern: line 1, column 3: lookaround and flags are not supported");
  EXPECT_EQ(error(R"({"pattern": "a\\b"})"),
            "json_schema: #/pattern: line 1, column 3: the escape \"\\b\" is not supported");
  EXPECT_EQ(
      error(R"j({"pattern": "(^a)"})j").find("json_schema: #/pattern: line 1, column 2: an anchor"),
      0u);
  EXPECT_EQ(error(R"({"pattern": "a", "maxLength": 3})"),
            "json_schema: #: of \"pattern\", \"format\" and \"minLength\" or \"maxLength\" only "
            "one is supported at a time");
  EXPECT_EQ(error(R"({"type": "number", "multipleOf": 0.25})"),
            "json_schema: #: \"multipleOf\" is supported only as a whole number or 0.1, 0.01, ...");
  EXPECT_EQ(error(R"({"minimum": 2, "maximum": 1})"),
            "json_schema: #: the minimum is more than the maximum");
  EXPECT_EQ(error(R"({"minLength": -1})"),
            "json_schema: #: \"minLength\" must be a whole number, 0 or more");
  EXPECT_EQ(error(R"({"required": ["a"], "additionalProperties": false})"),
            "json_schema: #: \"required\": \"a\" is none of the properties");
  EXPECT_EQ(error("[]"), "json_schema: #: a schema must be an object, true or false");
  EXPECT_EQ(error("{"), "json_schema: not valid JSON (at byte 2)");
  EXPECT_EQ(error("false"), "json_schema: no finite text satisfies it");
  EXPECT_EQ(error(R"({"$ref": "#"})"), "json_schema: #: left recursion: # -> #");
  EXPECT_EQ(error(R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})"),
            "json_schema: no finite text satisfies it");
}

}  // namespace
}  // namespace orthrus
