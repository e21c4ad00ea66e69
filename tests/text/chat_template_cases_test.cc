// Templates rendered as jinja2 renders them; the cases are made by the make_*_cases.py beside.
#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>

#include "text/chat_template.h"
#include "text/template_test_support.h"

namespace orthrus {
namespace {

/// The text with each <<format>> replaced by today's date.
std::string dated(const std::string& text) {
  std::string out;
  size_t at = 0;
  for (size_t open; (open = text.find("<<", at)) != std::string::npos;) {
    const size_t close = text.find(">>", open);
    if (close == std::string::npos) break;
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    char date[100];
    const std::string format = text.substr(open + 2, close - open - 2);
    out += text.substr(at, open - at) +
           std::string(date, std::strftime(date, sizeof date, format.c_str(), &local));
    at = close + 2;
  }
  return out + text.substr(at);
}

TEST(ChatTemplateCases, RandomTemplates) {
  const std::vector<Json> lines = read_lines(kData + "random.jsonl");
  ASSERT_GE(lines.size(), 600u);
  const Json& context = lines[0];
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string source = lines[i]["template"];
    SCOPED_TRACE(source);
    std::string text;
    const std::string error = error_of([&] { text = ChatTemplate(source).render(context); });
    if (lines[i].contains("error")) {
      EXPECT_NE(error, "no error") << lines[i]["error"];
    } else {
      EXPECT_EQ(error, "no error");
      EXPECT_EQ(text, lines[i]["text"].get<std::string>());
    }
  }
}

TEST(ChatTemplateCases, ModelFamilies) {
  std::map<std::string, ChatTemplate> templates;
  std::vector<Json> conversations;
  Json variants;
  size_t cases = 0;
  for (const Json& line : read_lines(kData + "chat.jsonl")) {
    if (line.contains("messages")) conversations.push_back(line["messages"]);
    if (!line.contains("template")) {
      if (line.contains("kwargs")) variants = line["kwargs"];
      continue;
    }
    const std::string name = line["template"];
    if (templates.find(name) == templates.end()) {
      templates.emplace(name, ChatTemplate(read(kData + "chat/" + name + ".jinja")));
    }
    Json context = {{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"add_generation_prompt", false}};
    context.update(variants[line["kwargs"].get<size_t>()]);
    context["messages"] = conversations[line["conversation"].get<size_t>()];
    SCOPED_TRACE(name + " " + context.dump());
    std::string text;
    const std::string error = error_of([&] { text = templates.at(name).render(context); });
    if (line.contains("text")) {
      EXPECT_EQ(error, "no error");
      EXPECT_EQ(text, dated(line["text"]));
    } else if (line.contains("raised")) {
      EXPECT_EQ(error, line["raised"].get<std::string>());
    } else {
      EXPECT_NE(error, "no error") << line["error"];
    }
    ++cases;
  }
  EXPECT_GE(cases, 500u);
  EXPECT_EQ(templates.size(), 13u);
}

/// As a template that would copy on every turn would not.
TEST(ChatTemplateCases, LongConversationsTakeMilliseconds) {
  Json messages = Json::array({{{"role", "system"}, {"content", "Be brief."}}});
  for (int i = 0; i < 1000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                        {"content", "Turn " + std::to_string(i) + std::string(500, 'x')}});
  }
  for (const char* name : {"reasoning", "llama3", "qwen25", "deepseek", "hermes"}) {
    const ChatTemplate chat(read(kData + "chat/" + name + ".jinja"));
    const auto start = std::chrono::steady_clock::now();
    const std::string text = chat.render({{"messages", messages}, {"bos_token", ""}});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    EXPECT_GT(text.size(), 500'000u) << name;
    EXPECT_LT(took.count(), 1000) << name;  // about 10; the rest is for a busy machine
  }
}

}  // namespace
}  // namespace orthrus
