#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace orthrus::train {

/// A half-open range of tokens of a document that the frozen model itself has written.
struct AnswerSpan {
  int64_t begin = 0;
  int64_t end = 0;
};

/// A prompt with its answer, or a chat of several turns.
struct Document {
  std::vector<int32_t> tokens;
  std::vector<AnswerSpan> answers;  ///< in order, without overlap
};

/// What a shard file holds. The layout is described in docs/training.md.
struct Shard {
  std::string base_hash;  ///< of the model that wrote the answers (formats/checkpoint.h)
  int64_t vocab_size = 0;
  std::map<std::string, std::string> provenance;  ///< free words: where the prompts are from, how
  std::vector<Document> documents;
};

/// Atomically. Two bytes a token where the vocabulary allows it, else four.
void write_shard(const std::string& path, const Shard& shard);

/// Error(kInput) in one line where the file is not exactly what the layout says; counts
/// are checked against the file's size before anything is allocated for them.
Shard read_shard(const std::string& path);

/// All shards of the files and folders given (in a folder: *.shard, by name), one behind the other.
/// Error(kInput) where they are of different models or there is none.
Shard read_shards(const std::vector<std::string>& paths);

/// Tokens in answers, all documents together.
int64_t answer_tokens(const Shard& shard);

}  // namespace orthrus::train
