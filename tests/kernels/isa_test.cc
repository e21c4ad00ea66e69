#include "kernels/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace orthrus {
namespace {

class ForcedIsa : public testing::Test {
 protected:
  void SetUp() override {
    if (const char* value = std::getenv("ORTHRUS_ISA")) before_ = value;
  }
  void TearDown() override {
    before_.empty() ? unsetenv("ORTHRUS_ISA") : setenv("ORTHRUS_ISA", before_.c_str(), 1);
  }
  std::string before_;
};

TEST_F(ForcedIsa, EachSupportedOneCanBeForced) {
  for (Isa isa : kIsas) {
    setenv("ORTHRUS_ISA", std::string(isa_name(isa)).c_str(), 1);
    if (isa_supported(isa)) {
      EXPECT_EQ(choose_isa(), isa);
    } else {
      EXPECT_THROW(choose_isa(), Error);
    }
  }
}

TEST_F(ForcedIsa, UnknownNamesAreUsageErrorsThatListTheKnownOnes) {
  setenv("ORTHRUS_ISA", "avx1024", 1);
  try {
    choose_isa();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_NE(std::string(error.what()).find("avx1024"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("portable, avx2, avxvnni, avx512"), std::string::npos);
  }
}

TEST_F(ForcedIsa, TheBestSupportedOneIsTheDefault) {
  for (const char* value : {"", "unset"}) {
    *value == 0 ? setenv("ORTHRUS_ISA", value, 1) : unsetenv("ORTHRUS_ISA");
    const Isa chosen = choose_isa();
    EXPECT_TRUE(isa_supported(chosen));
    for (Isa isa : kIsas) {
      if (isa > chosen) {
        EXPECT_FALSE(isa_supported(isa));
      }
    }
  }
}

}  // namespace
}  // namespace orthrus
