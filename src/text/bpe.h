#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace orthrus {

/// Byte pair encoding by rank (Sennrich et al. 2016, section 3.2, on bytes): of all neighbours that
/// have a merge, the one of the lowest rank, then the leftmost, is merged until none has one.
/// Immutable after building and safe to use from many threads.
class Bpe {
 public:
  /// Working memory of `encode`, kept by the caller to spare allocations.
  struct Scratch {
    std::vector<int32_t> id;        // of the symbol that starts at an index; -1: merged away
    std::vector<int32_t> previous;  // index of the symbol before, -1 at the start
    std::vector<int32_t> next;      // index of the symbol behind, -1 at the end
    std::vector<uint64_t> heap;     // candidates: rank << 32 | index of the left symbol
  };

  /// Token ids of the single bytes; -1: none.
  void set_byte_ids(const std::array<int32_t, 256>& ids) { byte_ids_ = ids; }
  /// Bytes without a token become `id`, a run of them one `id` if `fuse`. Without it they vanish.
  void set_unknown(int32_t id, bool fuse) {
    unknown_ = id;
    fuse_unknown_ = fuse;
  }
  /// For `merges` calls of add_merge.
  void reserve(size_t merges);
  /// The next merge in order of rank, or with `tied` of the rank of the last one. Of two with the
  /// same sides the later one counts; a result has merges of one rank where ranks are shared.
  void add_merge(int32_t left, int32_t right, int32_t result, bool tied = false);

  /// Appends the tokens of one piece of less than 2^31 bytes, in time n log n.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& out) const;
  /// The same where the symbols that are to be merged stand in scratch.id, fewer than 2^31.
  void merge(Scratch& scratch, std::vector<int32_t>& out) const;

 private:
  /// A slot of the hash table of pairs (open addressing, at most half full).
  struct Slot {
    uint64_t pair = kEmpty;  // left id << 32 | right id
    uint32_t rank = 0;
    int32_t result = 0;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;

  static uint64_t hash(uint64_t pair);
  const Slot* find(int32_t left, int32_t right) const;
  Slot& slot_for(uint64_t pair);
  void start(std::string_view piece, Scratch& scratch) const;
  static void link(Scratch& scratch);
  void offer(Scratch& scratch, int32_t left) const;
  void merge_all(Scratch& scratch) const;

  std::array<int32_t, 256> byte_ids_{};
  int32_t unknown_ = -1;
  bool fuse_unknown_ = false;
  std::vector<Slot> slots_;
  size_t merges_ = 0;
  std::vector<int32_t> results_;  // by rank: that of the first merge
};

}  // namespace orthrus
