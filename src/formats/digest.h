#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace orthrus {

/// A hash of bytes that come in pieces.
class Digest {
 public:
  enum class Kind : uint8_t { kSha256, kSha1 };

  explicit Digest(Kind kind = Kind::kSha256);
  ~Digest();
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;

  /// Begins anew.
  void reset();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  /// In lower-case hex; reset() comes next.
  std::string hex();

 private:
  Kind kind_;
  evp_md_ctx_st* context_;
};

}  // namespace orthrus
