#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace orthrus {

/// The part that one request has of the bytes of bodies that a server holds; gives it back at its
/// end. May outlive the server. One thread at a time.
class HttpBodyShare {
 public:
  using Total = std::shared_ptr<std::atomic<size_t>>;

  HttpBodyShare() = default;  ///< of nothing
  explicit HttpBodyShare(Total total) : total_(std::move(total)) {}
  ~HttpBodyShare() { set(0); }
  /// The other one has no bytes then, and may be set() again.
  HttpBodyShare(HttpBodyShare&& other) noexcept
      : total_(other.total_), bytes_(std::exchange(other.bytes_, 0)) {}
  HttpBodyShare& operator=(HttpBodyShare&& other) noexcept {
    if (this != &other) {
      set(0);
      total_ = other.total_;
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }

  /// The new total of all shares.
  size_t set(size_t bytes) {
    if (!total_) return 0;
    const size_t change = bytes - std::exchange(bytes_, bytes);  // wraps around where it falls
    return total_->fetch_add(change) + change;
  }

 private:
  Total total_;
  size_t bytes_ = 0;
};

}  // namespace orthrus
