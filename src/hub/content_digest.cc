#include "hub/content_digest.h"

#include <fmt/format.h>

namespace orthrus {
namespace {

constexpr size_t kSha256Digits = 64, kSha1Digits = 40;

}  // namespace

ContentDigest::ContentDigest(std::string_view name, uint64_t size)
    : sha256_(name.size() == kSha256Digits),
      size_(size),
      digest_(sha256_ ? Digest::Kind::kSha256 : Digest::Kind::kSha1) {
  reset();
}

void ContentDigest::reset() {
  digest_.reset();
  if (sha256_) return;
  const std::string head = fmt::format("blob {}", size_);
  digest_.add(std::string_view(head.c_str(), head.size() + 1));
}

bool is_content_name(std::string_view text) {
  return (text.size() == kSha1Digits || text.size() == kSha256Digits) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string content_name_of_etag(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return std::string(etag);
}

}  // namespace orthrus
