#include "formats/hub_name.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

TEST(HubName, HasOwnerNameAndPerhapsAType) {
  EXPECT_EQ(parse_hub_name("Qwen/Qwen3-0.6B")->repository, "Qwen/Qwen3-0.6B");
  EXPECT_EQ(parse_hub_name("Qwen/Qwen3-0.6B")->quant, "");
  const auto name = parse_hub_name("a_b/c.d:UD-Q4_K_XL");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repository, "a_b/c.d");
  EXPECT_EQ(name->quant, "UD-Q4_K_XL");
}

TEST(HubName, IsNothingElse) {
  for (const char* text :
       {"",      "/",          "a",      "a/",        "/b",       "a/b/c",  "../b",
        "a/..",  "a/.b",       "a/b.",   "-a/b",      "a--x/b",   "a/b..c", "a/b.git",
        "a b/c", "a/b:",       "a/b::c", "a/b:c/d",   "a/b:../c", "a/b\n",  "~/b",
        "./b",   "http://a/b", "a\\b/c", "\xc3\xa4/b"}) {
    EXPECT_FALSE(parse_hub_name(text)) << text;
  }
  EXPECT_TRUE(parse_hub_name("a/" + std::string(94, 'b')));
  EXPECT_FALSE(parse_hub_name("a/" + std::string(95, 'b')));
}

TEST(CommitHash, IsFortyDigits) {
  EXPECT_TRUE(is_commit_hash("0123456789abcdef0123456789abcdef01234567"));
  EXPECT_FALSE(is_commit_hash("0123456789abcdef0123456789abcdef0123456"));
  EXPECT_FALSE(is_commit_hash("0123456789ABCDEF0123456789ABCDEF01234567"));
  EXPECT_FALSE(is_commit_hash("../../../../../../../../../../../../../etc"));
}

}  // namespace
}  // namespace orthrus
