#include "hub/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/error.h"

namespace orthrus {
namespace {

constexpr size_t kSha256Digits = 64, kSha1Digits = 40;

}  // namespace

ContentDigest::ContentDigest(std::string_view name, uint64_t size)
    : sha256_(name.size() == kSha256Digits), size_(size), context_(EVP_MD_CTX_new()) {
  ORTHRUS_CHECK(context_);
  reset();
}

ContentDigest::~ContentDigest() { EVP_MD_CTX_free(context_); }

void ContentDigest::reset() {
  ORTHRUS_CHECK(EVP_DigestInit_ex(context_, sha256_ ? EVP_sha256() : EVP_sha1(), nullptr) == 1);
  if (sha256_) return;
  const std::string head = fmt::format("blob {}", size_);
  add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
}

void ContentDigest::add(std::span<const std::byte> bytes) {
  ORTHRUS_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1);
}

std::string ContentDigest::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ORTHRUS_CHECK(EVP_DigestFinal_ex(context_, digest, &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
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
