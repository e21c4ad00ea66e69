#include "text/chat_template.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "text/template_test_support.h"

namespace orthrus {
namespace {

std::string render(const std::string& source, const Json& context = Json::object()) {
  return ChatTemplate(source).render(context);
}

std::string render_error(const std::string& source, const Json& context = Json::object()) {
  return error_of([&] { render(source, context); });
}

/// The goldens are what transformers' apply_chat_template rendered.
void expect_goldens(const std::string& name, size_t count) {
  const ChatTemplate chat(read(kData + name + ".jinja"));
  const std::vector<Json> cases = read_lines(kData + name + ".jsonl");
  ASSERT_EQ(cases.size(), count);
  for (const Json& each : cases) {
    Json context = each["kwargs"];
    context["messages"] = each["messages"];
    context["add_generation_prompt"] = each["add_generation_prompt"];
    context["tools"] = each.contains("tools") ? each["tools"] : Json();
    EXPECT_EQ(chat.render(context), each["text"].get<std::string>()) << each.dump();
  }
}

TEST(ChatTemplate, Qwen3Goldens) { expect_goldens("qwen3", 271); }
TEST(ChatTemplate, SmolLM2Goldens) { expect_goldens("smollm2", 271); }

/// Cases made by make_template_cases.py with jinja2 itself.
TEST(ChatTemplate, AgreesWithJinja2) {
  const std::vector<Json> cases = read_lines(kData + "cases.jsonl");
  ASSERT_GE(cases.size(), 150u);
  for (const Json& each : cases) {
    const std::string source = each["template"];
    SCOPED_TRACE(source);
    if (each.contains("error")) {
      EXPECT_NE(render_error(source, each["context"]), "no error") << each["error"];
    } else {
      std::string text;
      EXPECT_NO_THROW(text = render(source, each["context"]));
      EXPECT_EQ(text, each["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplate, UnknownConstructsAreNamedWithTheirLine) {
  EXPECT_EQ(render_error("a\nb\n{{ x | foo }}"), "chat template line 3: unknown filter 'foo'");
  EXPECT_EQ(render_error("\n{% if x is foo %}{% endif %}"),
            "chat template line 2: unknown test 'foo'");
  EXPECT_EQ(render_error("{% include 'x' %}"),
            "chat template line 1: tag 'include' is not supported: a chat template stands alone");
  EXPECT_EQ(render_error("{% if x %}\n"), "chat template line 1: missing {% endif %}");
  EXPECT_EQ(render_error("{{ x"), "chat template line 1: tag without an end, expected '}}'");
  EXPECT_EQ(render_error("\n{{ 1 + }}"),
            "chat template line 2: expected an expression, found '}}'");
  EXPECT_EQ(render_error("\n\n{{ nothing.x }}"), "chat template line 3: 'nothing' is undefined");
}

TEST(ChatTemplate, RaisesTheTemplatesOwnMessage) {
  EXPECT_EQ(render_error("{{ raise_exception('Roles must alternate: ' ~ 1) }}"),
            "Roles must alternate: 1");
}

TEST(ChatTemplate, HostileTemplatesEndInAnError) {
  const std::string nested(5000, '(');
  const std::string minus(100000, '-');
  std::string sum = "{{ 1";
  for (int i = 0; i < 5000; ++i) sum += "+1";
  std::string ifs;
  for (int i = 0; i < 5000; ++i) ifs += "{% if 1 %}";
  const std::string hostile[] = {
      "{{ 'a' * 10**9 }}",
      "{{ [0] * 10**9 }}",
      "{{ 'a' * 10**17 * 10 }}",
      "{% for i in range(10**12) %}{% endfor %}",
      "{{ 9 ** 9 ** 9 ** 9 }}",
      "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
      "{% for a in range(100000) %}{{ 'x' * 100000 }}{% endfor %}",
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{% for i in range(9) recursive %}{{ loop(range(9)) }}{% endfor %}",
      "{{ 'a' | slice(10**12) }}",
      "{{ '%*d' % (10**9, 1) }}",
      "{{ 'a\\tb'.expandtabs(10**12) }}",
      "{% set ns = namespace(x=[]) %}{% for i in range(99999) %}{% set ns.x = [ns.x] %}{% endfor "
      "%}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% endfor %}{{ ns.x }}",
      "{% set ns = namespace() %}{% set ns.x = ns %}{{ ns }}",
      "{{ '%1000000000d' % 1 }}",
      "{{ '{:1000000000}'.format(1) }}",
      "{{ 'a'.ljust(10**10) }}",
      "{{ 'a'.replace('', 'b' * 10**8).replace('b', 'c' * 1000) }}",
      "{{ 'a' | indent(10**12) }}",
      "{{ " + nested + " }}",
      "{{ " + minus + "1 }}",
      "{{ " + std::string(100000, '[') + " }}",
      sum + " }}",
      ifs,
  };
  for (const std::string& source : hostile) {
    const std::string error = render_error(source);
    EXPECT_NE(error, "no error") << source.substr(0, 80);
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(ChatTemplate, ContextIsChecked) {
  EXPECT_EQ(render("{{ x }}", {{"x", 18446744073709551615ull}}), "18446744073709551615");
  EXPECT_NE(render_error("{{ x }}", Json::array()), "no error");
  Json deep = 1;
  for (int i = 0; i < 1000; ++i) deep = Json::array({std::move(deep)});
  EXPECT_NE(render_error("{{ x }}", {{"x", deep}}), "no error");
}

TEST(ChatTemplate, TellsTheDate) {
  const std::string year = render("{{ strftime_now('%Y-%m-%d') }}");
  ASSERT_EQ(year.size(), 10u);
  EXPECT_GE(year, "2024-01-01");
}

TEST(ChatTemplate, RendersFromManyThreads) {
  const ChatTemplate chat("{% for i in range(100) %}{{ x ~ i }}{% endfor %}");
  const std::string expected = chat.render({{"x", "a"}});
  std::vector<std::string> texts(4);
  {
    std::vector<std::jthread> threads;
    for (std::string& text : texts) {
      threads.emplace_back([&] { text = chat.render({{"x", "a"}}); });
    }
  }
  for (const std::string& text : texts) EXPECT_EQ(text, expected);
}

class LoadTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::path(testing::TempDir()) /
            ("orthrus_template_" + std::string(info->name()));
    std::filesystem::create_directories(path_);
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(path_ / name) << text;
  }
  std::filesystem::path path_;
};

TEST_F(LoadTest, DirectoryWithConfig) {
  write("tokenizer_config.json",
        R"({"chat_template": "{{ bos_token }}|{{ eos_token }}|{{ x }}",
            "bos_token": {"content": "<s>"}, "eos_token": "</s>"})");
  const auto chat = ChatTemplate::load(path_);
  ASSERT_NE(chat, nullptr);
  EXPECT_EQ(chat->render({{"x", 1}}), "<s>|</s>|1");
  EXPECT_EQ(chat->render({{"eos_token", "E"}}), "<s>|E|");
}

TEST_F(LoadTest, TemplateFileComesFirst) {
  write("tokenizer_config.json", R"({"chat_template": "config", "bos_token": "B"})");
  write("chat_template.jinja", "{{ bos_token }} file\n");
  EXPECT_EQ(ChatTemplate::load(path_)->render(Json::object()), "B file");
  EXPECT_EQ(ChatTemplate::load(path_ / "chat_template.jinja")->render(Json::object()), " file");
}

TEST_F(LoadTest, DefaultOfAList) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "rag", "template": "r"}, {"name": "default", "template": "d"}]})");
  EXPECT_EQ(ChatTemplate::load(path_)->render(Json::object()), "d");
}

TEST_F(LoadTest, WithoutTemplate) {
  EXPECT_EQ(ChatTemplate::load(path_), nullptr);
  write("tokenizer_config.json", "{}");
  EXPECT_EQ(ChatTemplate::load(path_), nullptr);
  write("tokenizer_config.json", R"({"chat_template": 1})");
  EXPECT_NE(error_of([&] { ChatTemplate::load(path_); }), "no error");
  write("tokenizer_config.json", "[");
  EXPECT_NE(error_of([&] { ChatTemplate::load(path_); }), "no error");
  EXPECT_NE(error_of([&] { ChatTemplate::load(path_ / "missing.jinja"); }), "no error");
}

}  // namespace
}  // namespace orthrus
