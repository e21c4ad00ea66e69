#include "trainer/data/overlap.h"

#include <cctype>

namespace orthrus::train {
namespace {

constexpr uint64_t kPrime = 0x100000001b3;

/// A hash of every word (FNV-1a, 64 bits).
std::vector<uint64_t> word_hashes(std::string_view text) {
  constexpr uint64_t kStart = 0xcbf29ce484222325;
  std::vector<uint64_t> words;
  bool inside = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    // Bytes of other scripts are letters.
    const bool letter = byte >= 0x80 || std::isalnum(byte) != 0;
    if (letter && !inside) words.push_back(kStart);
    if (letter) {
      words.back() = (words.back() ^ static_cast<uint64_t>(std::tolower(byte))) * kPrime;
    }
    inside = letter;
  }
  return words;
}

uint64_t run_hash(const uint64_t* words, size_t count) {
  uint64_t hash = count;
  for (size_t i = 0; i < count; ++i) {
    hash = (hash ^ words[i]) * kPrime;
    hash ^= hash >> 29;
  }
  return hash;
}

}  // namespace

void Overlap::hold_out(std::string_view text) {
  const std::vector<uint64_t> words = word_hashes(text);
  if (words.size() < kWords) {
    if (!words.empty()) wholes_.insert(run_hash(words.data(), words.size()));
    return;
  }
  for (size_t i = 0; i + kWords <= words.size(); ++i) runs_.insert(run_hash(&words[i], kWords));
}

bool Overlap::found_in(std::string_view text) const {
  const std::vector<uint64_t> words = word_hashes(text);
  if (words.size() < kWords) return wholes_.contains(run_hash(words.data(), words.size()));
  for (size_t i = 0; i + kWords <= words.size(); ++i) {
    if (runs_.contains(run_hash(&words[i], kWords))) return true;
  }
  return false;
}

}  // namespace orthrus::train
