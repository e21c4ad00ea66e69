#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "formats/digest.h"

namespace orthrus {

/// The hash by which the hub names a file's content, from the length of its name: SHA-256 (64 hex
/// digits) of files in large-file storage, else Git's name of the blob (40), SHA-1 over a line with
/// the size and the content.
class ContentDigest {
 public:
  /// `name`: what is_content_name() takes. `size`: bytes of the whole content.
  ContentDigest(std::string_view name, uint64_t size);

  /// Begins anew.
  void reset();
  void add(std::span<const std::byte> bytes) { digest_.add(bytes); }
  /// In lower-case hex; reset() comes next.
  std::string hex() { return digest_.hex(); }
  /// "SHA-256" or "Git SHA-1", for messages.
  const char* kind() const { return sha256_ ? "SHA-256" : "Git SHA-1"; }

 private:
  bool sha256_;
  uint64_t size_;
  Digest digest_;
};

/// Whether the text is 40 or 64 hex digits in lower case.
bool is_content_name(std::string_view text);

/// The content's name in an ETag header: without quotes and the mark of a weak one.
std::string content_name_of_etag(std::string_view etag);

}  // namespace orthrus
