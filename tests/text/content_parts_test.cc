#include "text/content_parts.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "text/chat_template.h"

namespace orthrus {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kJoined = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}";
constexpr const char* kWalked =
    "{% for m in messages %}[{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endif %}]{% endfor %}";

Json parts(std::initializer_list<const char*> texts) {
  Json made = Json::array();
  for (const char* text : texts) made.push_back({{"type", "text"}, {"text", text}});
  return made;
}

Json user(Json content) { return {{"role", "user"}, {"content", std::move(content)}}; }

std::string render(const std::string& source, const Json& messages) {
  return ChatTemplate(source).render({{"messages", messages}});
}

std::string error_of(const Json& messages) {
  try {
    return "no error, but " + render(kJoined, messages);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
}

TEST(ContentParts, AreJoinedForTemplatesThatWantText) {
  EXPECT_EQ(render(kJoined, Json::array({user(parts({"a", "b"}))})), "[user:a\nb]");
  EXPECT_EQ(render(kJoined, Json::array({user(Json::array()), user("x")})), "[user:][user:x]");
  EXPECT_EQ(render("{{ messages[0].content + '!' }}", Json::array({user(parts({"a"}))})), "a!");
  EXPECT_EQ(render("{{ messages[0].content | tojson }}", Json::array({user(parts({"a", "b"}))})),
            "\"a\\nb\"");
  EXPECT_EQ(render("{% if messages[0].content is string %}{{ messages[0].content }}{% endif %}",
                   Json::array({user(parts({"a"}))})),
            "a");
}

TEST(ContentParts, StayForTemplatesThatWalkThem) {
  EXPECT_EQ(render(kWalked, Json::array({user(parts({"a", "b"})), user("c")})), "[<a><b>][c]");
  EXPECT_EQ(render("{{ messages[0].content | map(attribute='text') | join('+') }}",
                   Json::array({user(parts({"a", "b"}))})),
            "a+b");
}

/// A system message that must be text beside user messages that are walked.
TEST(ContentParts, AreToldByRole) {
  const std::string source =
      "{{ messages[0].content + '|' }}{% for m in messages[1:] %}{% if m.content is string %}"
      "{{ m.content }}{% else %}{% for p in m.content %}<{{ p.text }}>{% endfor %}{% endif %}"
      "{% endfor %}";
  const Json system = {{"role", "system"}, {"content", parts({"s", "t"})}};
  EXPECT_EQ(render(source, Json::array({system, user(parts({"a", "b"}))})), "s\nt|<a><b>");
}

TEST(ContentParts, OfOtherTypesAreRefused) {
  const Json image = {{"type", "image_url"}, {"image_url", {{"url", "x"}}}};
  Json mixed = parts({"t"});
  mixed.push_back(image);
  EXPECT_EQ(error_of(Json::array({user("a"), user(mixed)})),
            "messages[1].content[1] is of type \"image_url\", expected \"text\"");
  Json empty = Json::array();
  empty.push_back({{"type", "text"}});
  EXPECT_EQ(error_of(Json::array({user(empty)})),
            "messages[0].content[0] has no \"text\" that is a string");
}

/// Lists without types are data of the template's own, such as documents that a tool found.
TEST(ContentParts, OtherListsAreLeftAlone) {
  const Json content = Json::parse(R"([{"t": 1}, "x"])");
  EXPECT_EQ(render("{{ messages[0].content | tojson }}", Json::array({user(content)})),
            "[{\"t\": 1}, \"x\"]");
}

TEST(ContentParts, ManyRolesAreRefused) {
  Json messages = Json::array();
  for (int i = 0; i < 9; ++i) {
    messages.push_back({{"role", std::to_string(i)}, {"content", parts({"a"})}});
  }
  EXPECT_EQ(error_of(messages), "content in parts under more than 8 roles");
}

}  // namespace
}  // namespace orthrus
