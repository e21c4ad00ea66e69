#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

#include "orthrus/error.h"

namespace orthrus::testing {

/// A directory of its own under the system's temporary one, removed at the end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "orthrus-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) ? pattern : "";
    EXPECT_FALSE(path_.empty());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }

  /// Writes a file and returns its path.
  std::string write(const std::string& name, std::string_view bytes) const {
    std::string file = path_ + "/" + name;
    std::ofstream out(file, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(out.good()) << file;
    return file;
  }

 private:
  std::string path_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// The message of the Error(kInput) that `function` throws; it must be one printable line.
template <typename Function>
std::string input_error(Function&& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput) << error.what();
    const std::string text = error.what();
    for (unsigned char c : text) EXPECT_GE(c, 0x20u) << text;
    EXPECT_LT(text.size(), 500u);
    return text;
  }
  ADD_FAILURE() << "no error";
  return "";
}

#define EXPECT_INPUT_ERROR(statement, part)                                                   \
  do {                                                                                        \
    const std::string message_ = ::orthrus::testing::input_error([&] { (void)(statement); }); \
    EXPECT_NE(message_.find(part), std::string::npos) << message_;                            \
  } while (false)

}  // namespace orthrus::testing
