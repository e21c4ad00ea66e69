#include "text/tokenizer_normalizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <random>

#include "text/utf8.h"
#include "tokenizer_test_support.h"

namespace orthrus {
namespace {

TEST(Nfc, KnownCases) {
  EXPECT_EQ(normalize_nfc("e\u0301"), "é");
  EXPECT_EQ(normalize_nfc("\u212B\u2126"), "ÅΩ");             // singletons
  EXPECT_EQ(normalize_nfc("\u1100\u1161\u11A8"), "각");       // Hangul
  EXPECT_EQ(normalize_nfc("\u0958"), "\u0915\u093C");         // composition exclusion
  EXPECT_EQ(normalize_nfc("a\u0308\u0323"), "\u1EA1\u0308");  // order of marks
  EXPECT_EQ(normalize_nfc("q\u0307\u0323"), "q\u0323\u0307");
  EXPECT_EQ(normalize_nfc("\u0301e"), "\u0301e");
  EXPECT_EQ(normalize_nfc("漢字😀"), "漢字😀");
  EXPECT_EQ(normalize_nfc(""), "");
  EXPECT_EQ(normalize_nfc(std::string_view("\0a", 2)), std::string_view("\0a", 2));
}

TEST(Nfc, PlainTextIsRecognised) {
  EXPECT_TRUE(is_plainly_nfc("Zoë says hi"));
  EXPECT_FALSE(is_plainly_nfc("e\u0301"));
  EXPECT_FALSE(is_plainly_nfc("漢"));
}

TEST(Nfc, AgreesWithUtf8proc) {
  std::mt19937 random(3);
  const char32_t first[] = {0x41,   0xC0,   0x300, 0x1100, 0x1161,
                            0x11A7, 0xAC00, 0x900, 0x1E00, 0xFB1D};
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) append_utf8(text, first[random() % 10] + random() % 0x70);
    utf8proc_uint8_t* expected = nullptr;
    utf8proc_ssize_t size =
        utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                     static_cast<utf8proc_ssize_t>(text.size()), &expected,
                     static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    ASSERT_GE(size, 0);
    EXPECT_EQ(normalize_nfc(text),
              std::string(reinterpret_cast<char*>(expected), static_cast<size_t>(size)));
    free(expected);
  }
}

TEST(Nfc, LongRunsOfMarksAreQuick) {
  std::string text = "a";
  for (int i = 0; i < 250'000; ++i) text += "\u0301\u0323";
  std::string normalized;
  EXPECT_LT(cpu_seconds([&] { normalized = normalize_nfc(text); }), 1.0 * kSlowBuild);
  // The first dot below goes into the letter; the other marks are sorted: below, then above.
  EXPECT_EQ(normalized.substr(0, 5), "\u1EA1\u0323");
  EXPECT_EQ(normalized.substr(normalized.size() - 2), "\u0301");
}

}  // namespace
}  // namespace orthrus
