#include "trainer/data/shard.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "trainer/data/differences.h"

namespace orthrus::train {
namespace {

constexpr char kMagic[8] = {'O', 'R', 'T', 'H', 'S', 'H', 'D', '1'};
constexpr uint64_t kMaxHeader = 1 << 20;
constexpr int64_t kMaxVocabulary = 1 << 24;

bool short_tokens(int64_t vocab_size) { return vocab_size <= 1 << 16; }

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Reads little-endian numbers front to back; the caller has checked that they are there.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, size_t position) : bytes_(bytes), position_(position) {}
  template <typename T>
  T next() {
    T value;
    ORTHRUS_CHECK(position_ + sizeof value <= bytes_.size());
    std::memcpy(&value, bytes_.data() + position_, sizeof value);
    position_ += sizeof value;
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_;
};

/// The header's counts, compared with the size of the file before anything is allocated.
struct Counts {
  uint64_t documents, spans, tokens;
};

uint64_t count(const nlohmann::json& header, const char* key, const std::string& path) {
  const auto at = header.find(key);
  if (at == header.end() || !at->is_number_unsigned()) {
    fail("{}: the header's \"{}\" is missing or no count", path, key);
  }
  return at->get<uint64_t>();
}

Counts read_counts(const nlohmann::json& header, uint64_t body, size_t token_bytes,
                   const std::string& path) {
  const Counts c{count(header, "documents", path), count(header, "spans", path),
                 count(header, "tokens", path)};
  const bool plausible = c.documents <= body / 8 && c.spans <= body / 8 && c.tokens <= body / 2;
  const uint64_t expected = plausible ? 8 * c.documents + 8 * c.spans + token_bytes * c.tokens : 0;
  if (!plausible || expected != body) {
    fail("{}: {} documents, {} spans and {} tokens do not fit {} bytes", path, c.documents, c.spans,
         c.tokens, body);
  }
  return c;
}

void check_document(const Document& d, size_t index, int64_t vocab_size, const std::string& path) {
  int64_t last = 0;
  for (const AnswerSpan& span : d.answers) {
    if (span.begin < last || span.end <= span.begin ||
        span.end > static_cast<int64_t>(d.tokens.size())) {
      fail("{}: document {}: answer [{}, {}) is outside of its {} tokens or out of order", path,
           index, span.begin, span.end, d.tokens.size());
    }
    last = span.end;
  }
  for (const int32_t token : d.tokens) {
    if (token < 0 || token >= vocab_size) {
      fail("{}: document {}: token {} is outside of a vocabulary of {}", path, index, token,
           vocab_size);
    }
  }
}

std::vector<Document> read_documents(Cursor cursor, const Counts& counts, int64_t vocab_size,
                                     const std::string& path) {
  std::vector<uint32_t> lengths(counts.documents), spans(counts.documents);
  uint64_t tokens = 0, total_spans = 0;
  for (uint32_t& length : lengths) tokens += length = cursor.next<uint32_t>();
  for (uint32_t& n : spans) total_spans += n = cursor.next<uint32_t>();
  if (tokens != counts.tokens || total_spans != counts.spans) {
    fail("{}: its documents have {} tokens and {} spans, the header says {} and {}", path, tokens,
         total_spans, counts.tokens, counts.spans);
  }
  std::vector<Document> documents(counts.documents);
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i].answers.resize(spans[i]);
    for (AnswerSpan& span : documents[i].answers) {
      span.begin = cursor.next<uint32_t>();
      span.end = cursor.next<uint32_t>();
    }
  }
  for (size_t i = 0; i < documents.size(); ++i) {
    documents[i].tokens.resize(lengths[i]);
    for (int32_t& token : documents[i].tokens) {
      token = short_tokens(vocab_size) ? cursor.next<uint16_t>()
                                       : static_cast<int32_t>(cursor.next<uint32_t>());
    }
    check_document(documents[i], i, vocab_size, path);
  }
  return documents;
}

std::string header_of(const Shard& shard) {
  size_t spans = 0, tokens = 0;
  for (const Document& d : shard.documents) {
    spans += d.answers.size();
    tokens += d.tokens.size();
  }
  return nlohmann::json{{"base_hash", shard.base_hash},
                        {"vocab_size", shard.vocab_size},
                        {"provenance", shard.provenance},
                        {"documents", shard.documents.size()},
                        {"spans", spans},
                        {"tokens", tokens}}
      .dump();
}

std::vector<std::string> shard_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".shard") inside.push_back(entry.path().string());
    }
    if (inside.empty()) fail("{}: a folder without .shard files", path);
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) fail_usage("no training data given");
  return files;
}

}  // namespace

void write_shard(const std::string& path, const Shard& shard) {
  const std::string header = header_of(shard);
  std::string out(kMagic, sizeof kMagic);
  put(out, static_cast<uint64_t>(header.size()));
  out += header;
  const auto u32 = [&](int64_t value) {
    ORTHRUS_CHECK(value >= 0 && value <= std::numeric_limits<uint32_t>::max());
    put(out, static_cast<uint32_t>(value));
  };
  for (const Document& d : shard.documents) u32(static_cast<int64_t>(d.tokens.size()));
  for (const Document& d : shard.documents) u32(static_cast<int64_t>(d.answers.size()));
  for (size_t i = 0; i < shard.documents.size(); ++i) {
    check_document(shard.documents[i], i, shard.vocab_size, path);
    for (const AnswerSpan& span : shard.documents[i].answers) {
      u32(span.begin);
      u32(span.end);
    }
  }
  for (const Document& d : shard.documents) {
    for (const int32_t token : d.tokens) {
      if (short_tokens(shard.vocab_size)) {
        put(out, static_cast<uint16_t>(token));
      } else {
        u32(token);
      }
    }
  }
  write_file_atomically(path, out);
}

Shard read_shard(const std::string& path) {
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  constexpr size_t kPrefix = sizeof kMagic + sizeof(uint64_t);
  if (bytes.size() < kPrefix || std::memcmp(bytes.data(), kMagic, sizeof kMagic) != 0) {
    fail("{}: no shard of training data (it does not begin with ORTHSHD1)", path);
  }
  const uint64_t header_bytes = Cursor(bytes, sizeof kMagic).next<uint64_t>();
  if (header_bytes > std::min<uint64_t>(kMaxHeader, bytes.size() - kPrefix)) {
    fail("{}: a header of {} bytes in a file of {}", path, header_bytes, bytes.size());
  }
  const auto* text = reinterpret_cast<const char*>(bytes.data() + kPrefix);
  const nlohmann::json header = parse_json({text, header_bytes}, path);
  Shard shard;
  try {
    shard.base_hash = header.at("base_hash").get<std::string>();
    shard.vocab_size = static_cast<int64_t>(count(header, "vocab_size", path));
    shard.provenance = header.at("provenance").get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception& error) {
    fail("{}: the header is incomplete: {}", path, printable(error.what()));
  }
  if (shard.vocab_size < 1 || shard.vocab_size > kMaxVocabulary) {
    fail("{}: a vocabulary of {} tokens, expected 1 to {}", path, shard.vocab_size, kMaxVocabulary);
  }
  const size_t start = kPrefix + header_bytes;
  const Counts counts =
      read_counts(header, bytes.size() - start, short_tokens(shard.vocab_size) ? 2 : 4, path);
  shard.documents = read_documents(Cursor(bytes, start), counts, shard.vocab_size, path);
  return shard;
}

Shard read_shards(const std::vector<std::string>& paths) {
  Shard all;
  const std::vector<std::string> files = shard_files(paths);
  for (const std::string& file : files) {
    Shard shard = read_shard(file);
    if (&file == &files.front()) {
      all = std::move(shard);
      continue;
    }
    if (shard.base_hash != all.base_hash || shard.vocab_size != all.vocab_size) {
      fail("{}: written by another model (hash {}, vocabulary {}) than {} (hash {}, vocabulary {})",
           file, printable(short_hash(shard.base_hash)), shard.vocab_size, files.front(),
           printable(short_hash(all.base_hash)), all.vocab_size);
    }
    std::move(shard.documents.begin(), shard.documents.end(), std::back_inserter(all.documents));
  }
  return all;
}

int64_t answer_tokens(const Shard& shard) {
  int64_t total = 0;
  for (const Document& d : shard.documents) {
    for (const AnswerSpan& span : d.answers) total += span.end - span.begin;
  }
  return total;
}

}  // namespace orthrus::train
