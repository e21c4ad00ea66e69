#include "base/atomic_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() { fs::create_directories(folder_ / "other"); }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }
  static void expect_refused(const std::string& path) {
    try {
      write_file_atomically(path, "new");
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path + ": cannot be written"), std::string::npos)
          << error.what();
    }
  }
  size_t files() const {
    const auto all = fs::recursive_directory_iterator(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  fs::path folder_ =
      fs::path(testing::TempDir()) / ("orthrus-atomic-" + std::to_string(::getpid()));
};

TEST_F(AtomicFileTest, AppearsWholeAndKeepsTheMode) {
  {
    AtomicFile file(path("a"));
    file.append(std::as_bytes(std::span("half", 4)));
    EXPECT_FALSE(fs::exists(path("a")));
  }
  EXPECT_EQ(files(), 1u);  // "other": nothing is left
  write_file_atomically(path("a"), "one");
  EXPECT_EQ(content(path("a")), "one");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomically(path("a"), "two");
  EXPECT_EQ(content(path("a")), "two");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files(), 2u);
}

TEST_F(AtomicFileTest, LinksStayAndWhatTheyLeadToIsReplaced) {
  write_file_atomically(path("other/target"), "old");
  fs::create_symlink("other/target", path("relative"));
  fs::create_symlink(path("relative"), path("absolute"));
  write_file_atomically(path("absolute"), "new");
  EXPECT_EQ(content(path("other/target")), "new");
  EXPECT_TRUE(fs::is_symlink(path("absolute")) && fs::is_symlink(path("relative")));
  fs::create_symlink("other/fresh", path("dangling"));
  write_file_atomically(path("dangling"), "there");
  EXPECT_EQ(content(path("other/fresh")), "there");
  EXPECT_TRUE(fs::is_symlink(path("dangling")));
}

TEST_F(AtomicFileTest, WhatIsNoRegularFileIsRefused) {
  fs::create_symlink("/proc/self/fd/1", path("stdout"));
  fs::create_symlink("/dev/null", path("null"));
  fs::create_symlink("loop", path("loop"));
  for (const char* name : {"stdout", "null", "loop", "other"}) expect_refused(path(name));
  for (const char* name : {"/dev/stdout", "/dev/null", "/proc/self/fd/1"}) expect_refused(name);
  EXPECT_TRUE(fs::is_symlink(path("stdout")));
  EXPECT_TRUE(fs::is_symlink("/dev/stdout"));
  expect_refused(path("no/such/folder/file"));
  EXPECT_EQ(files(), 4u);
}

}  // namespace
}  // namespace orthrus
