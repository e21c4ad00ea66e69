#include "base/folder_lock.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/error.h"

namespace orthrus {
namespace {

TEST(FolderLock, KeepsOthersOutUntilItGoes) {
  const std::string folder = testing::TempDir() + "/orthrus_folder_lock";
  std::filesystem::create_directories(folder);
  std::optional<FolderLock> lock(folder);
  EXPECT_TRUE(lock->held());
  EXPECT_NO_THROW(lock->require());
  const FolderLock second(folder);
  EXPECT_FALSE(second.held());
  try {
    second.require();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_EQ(std::string(error.what()), folder + ": another process is at work in it");
  }
  lock.reset();
  EXPECT_TRUE(FolderLock(folder).held());
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(FolderLock(folder).held());
}

}  // namespace
}  // namespace orthrus
