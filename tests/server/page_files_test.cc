#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "server/page.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

const PageFile* find_page_file(std::string_view path) {
  for (const PageFile& file : page_files()) {
    if (file.path == path) return &file;
  }
  return nullptr;
}

TEST(PageFiles, AreThoseOfTheSourceByteForByte) {
  std::set<std::string_view> etags;
  const fs::path folder = fs::path(ORTHRUS_SOURCE_DIR) / "src/server/page";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    const PageFile* file = find_page_file(name == "index.html" ? "/" : "/page/" + name);
    ASSERT_NE(file, nullptr) << name;
    EXPECT_EQ(file->body, content.str()) << name;
    EXPECT_NE(file->content_type, "") << name;
    EXPECT_TRUE(etags.insert(file->etag).second) << name;
    EXPECT_EQ(file->etag.size(), 18u) << file->etag;
  }
  EXPECT_GE(etags.size(), 5u);
  EXPECT_EQ(find_page_file("/")->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(find_page_file("/page/main.js")->content_type, "text/javascript; charset=utf-8");
}

TEST(PageFiles, NothingElseIsFound) {
  for (const char* path : {"", "/page", "/page/", "/page/index.html", "/page/../page/main.js",
                           "/v1/models", "/Page/main.js"}) {
    EXPECT_EQ(find_page_file(path), nullptr) << path;
  }
}

// The policy forbids what the page would have to do without: script and style in its text, and
// addresses elsewhere.
TEST(PageFiles, KeepToTheirPolicy) {
  const std::string html(find_page_file("/")->body);
  for (const char* forbidden : {"<script>", "<style", " style=", " onclick=", "http://", "https://",
                                "src=\"/", "href=\"/"}) {
    EXPECT_EQ(html.find(forbidden), std::string::npos) << forbidden;
  }
  EXPECT_NE(kPageSecurityPolicy.find("default-src 'none'"), std::string_view::npos);
}

}  // namespace
}  // namespace orthrus
