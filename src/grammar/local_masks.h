#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/token_trie.h"
#include "grammar/work.h"

namespace orthrus::grammar {

/// The part of a mask that a state decides alone, whatever it was called from: most of it, and all
/// that is expensive (inside of a string nearly every token may follow). Safe to use from many
/// threads; each part is computed on its first use and kept within a limit of memory.
class LocalMasks {
 public:
  struct Mask {
    std::vector<uint64_t> words;  ///< a bit for each token that may follow; empty: see `few`
    std::vector<int32_t> few;     ///< these tokens, where they are few
    std::vector<uint32_t> leave;  ///< nodes of the trie, with descendants, where the rule may
                                  ///< have ended: the tokens below depend on its caller too
    int32_t depth_reached = 0;    ///< calls on top of the state's own stack
    uint64_t work = 0;            ///< that it took to make
    size_t bytes() const {
      return sizeof(Mask) + words.size() * 8 + few.size() * 4 + leave.size() * 4;
    }
  };

  /// Both must outlive this. Error(kUsage) where the states are too much work to compare.
  LocalMasks(const Grammar& grammar, const TokenTrie& tokens);

  /// States of the same group have the same mask.
  uint32_t group(uint32_t state) const { return groups_[state]; }
  /// Counts the work of making it, if it is made; Error(kUsage) beyond the limit.
  std::shared_ptr<const Mask> get(uint32_t state, Work& work);

 private:
  std::shared_ptr<const Mask> make(uint32_t state, Work& work) const;

  const Grammar& grammar_;
  const TokenTrie& tokens_;
  /// States that cannot be told apart by a text as long as the longest token share their mask.
  std::vector<uint32_t> groups_;
  std::mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<const Mask>> masks_;
  size_t bytes_ = 0;
};

}  // namespace orthrus::grammar
