#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/aligned_buffer.h"
#include "base/mapped_file.h"
#include "base/tensor_type.h"
#include "orthrus/error.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

TEST(AlignedBuffer, IsZeroedAndAligned) {
  for (size_t bytes :
       {size_t{1}, size_t{4095}, size_t{4097}, size_t{2} << 20, (size_t{5} << 20) + 1}) {
    AlignedBuffer buffer(bytes);
    ASSERT_EQ(buffer.size(), bytes);
    const size_t alignment = bytes >= (size_t{2} << 20) ? size_t{2} << 20 : 4096;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % alignment, 0u);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(buffer.data()[i], std::byte{0});
    buffer.data()[0] = buffer.data()[bytes - 1] = std::byte{1};
  }
}

TEST(AlignedBuffer, EmptyHasNoMemory) {
  EXPECT_EQ(AlignedBuffer().data(), nullptr);
  EXPECT_EQ(AlignedBuffer(0).size(), 0u);
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer a(100);
  a.as<int>()[3] = 42;
  const std::byte* data = a.data();
  AlignedBuffer b(std::move(a));
  EXPECT_EQ(b.data(), data);
  AlignedBuffer c;
  c = std::move(b);
  EXPECT_EQ(c.data(), data);
  EXPECT_EQ(c.as<int>()[3], 42);
  EXPECT_EQ(c.size(), 100u);
}

TEST(AlignedBuffer, TooMuchIsAnErrorThatNamesTheSize) {
  for (size_t bytes : {size_t{1} << 62, ~size_t{0}, ~size_t{0} - (size_t{1} << 20)}) {
    try {
      AlignedBuffer buffer(bytes);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInternal);
      EXPECT_NE(std::string(error.what()).find(std::to_string(bytes)), std::string::npos)
          << error.what();
    }
  }
}

class MappedFileTest : public testing::Test {
 protected:
  MappedFileTest() {
    std::string name = (fs::temp_directory_path() / "orthrus_base_XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~MappedFileTest() override { fs::remove_all(directory_); }

  std::string path(const std::string& name) const { return (directory_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  void expect_refused(const std::string& file, const std::string& reason) const {
    try {
      MappedFile mapped(file);
      FAIL() << file;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      const std::string text = error.what();
      EXPECT_NE(text.find(file), std::string::npos) << text;
      EXPECT_NE(text.find(reason), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }

  fs::path directory_;
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(MappedFileTest, ShowsTheFile) {
  MappedFile file(write("a", std::string("x\0y", 3)));
  EXPECT_EQ(text_of(file), std::string("x\0y", 3));
  EXPECT_EQ(file.path(), path("a"));
}

TEST_F(MappedFileTest, RefusesWhatIsNoFileWithContent) {
  expect_refused(path("missing"), "No such file");
  expect_refused(directory_.string(), "not a regular file");
  expect_refused(write("empty", ""), "empty");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused(path("pipe"), "not a regular file");  // and does not wait for a writer
  expect_refused("/dev/zero", "not a regular file");
}

TEST_F(MappedFileTest, RefusesAFileItMayNotRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  ASSERT_EQ(::chmod(write("secret", "s").c_str(), 0), 0);
  expect_refused(path("secret"), "Permission denied");
}

TEST_F(MappedFileTest, DroppedPagesCanBeReadAgain) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += static_cast<char>(i * 7 + i / 256);
  MappedFile file(write("big", text));
  EXPECT_EQ(text_of(file), text);
  file.drop(file.bytes());
  file.drop(file.bytes().subspan(5, 3));
  file.drop({});
  EXPECT_EQ(text_of(file), text);
}

TEST_F(MappedFileTest, Moves) {
  MappedFile a(write("a", "first"));
  MappedFile b(std::move(a));
  EXPECT_EQ(text_of(b), "first");
  MappedFile c(write("c", "second"));
  c = std::move(b);
  EXPECT_EQ(text_of(c), "first");
  EXPECT_EQ(c.path(), path("a"));
}

TEST(TensorType, NamesAndSizes) {
  for (int i = 0; i <= static_cast<int>(TensorType::kIQ4_NL); ++i) {
    const auto type = static_cast<TensorType>(i);
    EXPECT_EQ(tensor_type_from_name(traits(type).name), type);
  }
  EXPECT_EQ(tensor_type_from_name("Q9_9"), std::nullopt);
  EXPECT_EQ(traits(TensorType::kQ4_K).name, "Q4_K");
  EXPECT_EQ(row_bytes(TensorType::kF32, 3), 12u);
  EXPECT_EQ(row_bytes(TensorType::kQ8_0, 64), 68u);    // 2 blocks of an f16 and 32 bytes
  EXPECT_EQ(row_bytes(TensorType::kQ4_K, 512), 288u);  // 4.5 bits a weight
  EXPECT_EQ(row_bytes(TensorType::kQ6_K, 256), 210u);  // 6.5625 bits a weight
}

}  // namespace
}  // namespace orthrus
