#pragma once

#include <cstdint>
#include <vector>

namespace orthrus::train {

/// Documents one behind the other, without padding. None sees another, and each one's positions
/// start at 0, as when it is served alone.
struct PackedRow {
  struct Document {
    int64_t begin = 0;  ///< [begin, end) of tokens
    int64_t end = 0;
  };
  std::vector<int64_t> tokens;
  std::vector<Document> documents;
};

/// A block of the diffusion view, by its anchor: an index into PackedRow::tokens.
struct Block {
  int64_t anchor = 0;
  int64_t document = 0;  ///< index into PackedRow::documents
};

}  // namespace orthrus::train
