#include "hub/listing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "orthrus/error.h"

namespace orthrus {
namespace {

const std::string kCommit(40, 'c'), kGitName(40, '1'), kSha256(64, '2');

HubListing parse(const std::string& files, const std::string& commit = kCommit) {
  return parse_hub_listing(fmt::format(R"({{"sha": "{}", "siblings": [{}]}})", commit, files),
                           "hub");
}

TEST(HubListing, TellsSizesAndContents) {
  const HubListing listing = parse(fmt::format(
      R"({{"rfilename": "a/config.json", "size": 7, "blobId": "{}"}},
         {{"rfilename": "w", "size": 134, "blobId": "{}", "lfs": {{"size": 5000000000, "sha256": "{}"}}}},
         {{"rfilename": "names only"}})",
      kGitName, kGitName, kSha256));
  EXPECT_EQ(listing.commit, kCommit);
  ASSERT_EQ(listing.files.size(), 3u);
  EXPECT_EQ(listing.files[0].path, "a/config.json");
  EXPECT_EQ(listing.files[0].size, 7u);
  EXPECT_EQ(listing.files[0].content, kGitName);
  EXPECT_EQ(listing.files[1].size, 5'000'000'000u);
  EXPECT_EQ(listing.files[1].content, kSha256);
  EXPECT_EQ(listing.files[2].size, std::nullopt);
  EXPECT_EQ(listing.files[2].content, "");
}

TEST(HubListing, KnowsNoContentThatIsNoHash) {
  EXPECT_EQ(parse(R"({"rfilename": "a", "size": 1, "blobId": "../../evil"})").files[0].content, "");
  EXPECT_EQ(parse(R"({"rfilename": "a", "size": -1})").files[0].size, std::nullopt);
}

TEST(HubListing, RefusesPathsThatLeadElsewhere) {
  for (const char* path : {"../a", "a/..", "a/../b", "/a", "a/", "a//b", "", ".", "./a", "a\\\\b",
                           "a\\nb", "a\\u0000b"}) {
    EXPECT_THROW(parse(fmt::format(R"({{"rfilename": "{}"}})", path)), Error) << path;
  }
  EXPECT_THROW(parse(fmt::format(R"({{"rfilename": "{}"}})", std::string(256, 'a'))), Error);
  for (const char* path : {"..a", "a..", ".gitattributes", "a/b/c.json", "\xc3\xa4 b"}) {
    EXPECT_EQ(parse(fmt::format(R"({{"rfilename": "{}"}})", path)).files[0].path, path);
  }
}

TEST(HubListing, RefusesWhatIsNone) {
  EXPECT_THROW(parse("", "main"), Error);
  EXPECT_THROW(parse("5"), Error);
  EXPECT_THROW(parse(R"({"rfilename": "a"}, {"rfilename": "a"})"), Error);
  for (const char* text : {"", "[]", "null", "{}", "<html>", R"({"sha": 5})"}) {
    EXPECT_THROW(parse_hub_listing(text, "hub"), Error) << text;
  }
}

}  // namespace
}  // namespace orthrus
