#include "hub/content_digest.h"

#include <gtest/gtest.h>

namespace orthrus {
namespace {

std::string digest(size_t digits, const std::string& text) {
  ContentDigest hash(std::string(digits, '0'), text.size());
  hash.add(std::as_bytes(std::span(text)));
  return hash.hex();
}

// What `git hash-object` and `sha256sum` print.
TEST(ContentDigest, IsGitsNameOrSha256) {
  EXPECT_EQ(digest(40, ""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
  EXPECT_EQ(digest(40, "what is up, doc?"), "bd9dbf5aae1a3862dd1526723246b20206e5fc37");
  EXPECT_EQ(digest(64, "abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ContentDigest, BeginsAnew) {
  ContentDigest hash(std::string(40, '0'), 0);
  hash.add(std::as_bytes(std::span("abc", 3)));
  hash.reset();
  EXPECT_EQ(hash.hex(), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST(ContentName, IsFoundInAnETag) {
  const std::string name(40, 'a');
  EXPECT_EQ(content_name_of_etag("\"" + name + "\""), name);
  EXPECT_EQ(content_name_of_etag("W/\"" + name + "\""), name);
  EXPECT_EQ(content_name_of_etag(name), name);
  EXPECT_EQ(content_name_of_etag("\""), "\"");
  EXPECT_TRUE(is_content_name(name));
  EXPECT_TRUE(is_content_name(std::string(64, '9')));
  for (const std::string& text : {std::string(), std::string(41, 'a'), std::string(40, 'A'),
                                  "../" + std::string(37, 'a'), "W/" + std::string(38, 'a')}) {
    EXPECT_FALSE(is_content_name(text)) << text;
  }
}

}  // namespace
}  // namespace orthrus
