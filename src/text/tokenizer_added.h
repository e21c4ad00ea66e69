#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer_spec.h"

namespace orthrus {

/// Finds added tokens in text: the leftmost, and there the longest. Immutable and safe to use from
/// many threads.
class AddedTokenMatcher {
 public:
  /// A token found, or the text between two.
  struct Section {
    int32_t id = -1;  ///< -1: text
    std::string_view text;
  };

  /// Longer contents are an Error(kInput): the time per byte of text grows with them.
  static constexpr size_t kMaxContentBytes = 512;

  /// `content` must not be empty.
  void add(const AddedToken& token, const std::string& where);
  /// Sections in order, without empty texts.
  std::vector<Section> split(std::string_view text) const;

 private:
  struct Flags {
    int32_t id = -1;
    bool strip_left = false;
    bool strip_right = false;
  };

  int32_t child(int32_t node, char byte) const;
  /// Length of the longest token that starts at `position`, 0 if none does.
  size_t longest_at(std::string_view text, size_t position, Flags& found) const;

  // A trie: edges by node << 8 | byte, and what ends in each node. Node 0 is the root.
  std::unordered_map<uint64_t, int32_t> edges_;
  std::vector<Flags> ends_{Flags{}};
  bool starts_[256] = {};  // bytes that leave the root
};

}  // namespace orthrus
