#include "formats/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/error.h"

namespace orthrus {

Digest::Digest(Kind kind) : kind_(kind), context_(EVP_MD_CTX_new()) {
  ORTHRUS_CHECK(context_);
  reset();
}

Digest::~Digest() { EVP_MD_CTX_free(context_); }

void Digest::reset() {
  const EVP_MD* const hash = kind_ == Kind::kSha256 ? EVP_sha256() : EVP_sha1();
  ORTHRUS_CHECK(EVP_DigestInit_ex(context_, hash, nullptr) == 1);
}

void Digest::add(std::span<const std::byte> bytes) {
  ORTHRUS_CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1);
}

std::string Digest::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ORTHRUS_CHECK(EVP_DigestFinal_ex(context_, digest, &size) == 1);
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace orthrus
