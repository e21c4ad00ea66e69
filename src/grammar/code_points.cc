#include <algorithm>

#include "grammar/expressions.h"

namespace orthrus::grammar {
namespace {

constexpr char32_t kLast = 0x10ffff;
constexpr CodePoints kSurrogates{0xd800, 0xdfff};

/// Last code point of a UTF-8 sequence of so many bytes.
constexpr std::array<char32_t, 4> kLastOfLength{0x7f, 0x7ff, 0xffff, kLast};

std::array<uint8_t, 4> encode(char32_t code, size_t length) {
  constexpr std::array<uint8_t, 4> kLead{0, 0xc0, 0xe0, 0xf0};
  std::array<uint8_t, 4> out{};
  for (size_t i = length; i-- > 1; code >>= 6) out[i] = static_cast<uint8_t>(0x80 | (code & 0x3f));
  out[0] = static_cast<uint8_t>(kLead[length - 1] | code);
  return out;
}

/// For code points of one length.
void add_sequences(char32_t first, char32_t last, size_t length, std::vector<ByteSequence>& out) {
  // Cut where the bytes behind some position do not run from their least to their greatest value.
  for (size_t behind = 1; behind < length; ++behind) {
    const char32_t low = (char32_t{1} << (6 * behind)) - 1;
    if ((first & ~low) == (last & ~low)) break;
    if ((first & low) != 0) {
      add_sequences(first, first | low, length, out);
      add_sequences((first | low) + 1, last, length, out);
      return;
    }
    if ((last & low) != low) {
      add_sequences(first, (last & ~low) - 1, length, out);
      add_sequences(last & ~low, last, length, out);
      return;
    }
  }
  const auto begin = encode(first, length), end = encode(last, length);
  ByteSequence sequence;
  sequence.length = length;
  for (size_t i = 0; i < length; ++i) sequence.ranges[i] = {begin[i], end[i]};
  out.push_back(sequence);
}

}  // namespace

std::vector<CodePoints> normalized(std::vector<CodePoints> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePoints& a, const CodePoints& b) { return a.first < b.first; });
  std::vector<CodePoints> merged;
  for (const CodePoints& range : ranges) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  std::vector<CodePoints> out;
  for (const CodePoints& range : merged) {
    const CodePoints low{range.first, std::min<char32_t>(range.last, kSurrogates.first - 1)};
    const CodePoints high{std::max<char32_t>(range.first, kSurrogates.last + 1),
                          std::min(range.last, kLast)};
    if (low.first <= low.last) out.push_back(low);
    if (high.first <= high.last) out.push_back(high);
  }
  return out;
}

std::vector<CodePoints> complement(std::vector<CodePoints> ranges) {
  std::vector<CodePoints> out;
  char32_t next = 0;
  for (const CodePoints& range : normalized(std::move(ranges))) {
    if (range.first > next) out.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return normalized(std::move(out));
}

std::vector<CodePoints> intersection(const std::vector<CodePoints>& a,
                                     const std::vector<CodePoints>& b) {
  std::vector<CodePoints> out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const CodePoints both{std::max(a[i].first, b[j].first), std::min(a[i].last, b[j].last)};
    if (both.first <= both.last) out.push_back(both);
    if (a[i].last < b[j].last) {
      ++i;
    } else {
      ++j;
    }
  }
  return out;
}

std::vector<ByteSequence> utf8_sequences(const std::vector<CodePoints>& ranges) {
  std::vector<ByteSequence> out;
  for (const CodePoints& range : ranges) {
    char32_t first = range.first;
    for (size_t length = 1; length <= 4 && first <= range.last; ++length) {
      const char32_t last = std::min(range.last, kLastOfLength[length - 1]);
      if (first > last) continue;
      add_sequences(first, last, length, out);
      first = last + 1;
    }
  }
  return out;
}

}  // namespace orthrus::grammar
