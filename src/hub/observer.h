#pragma once

#include <cstdint>
#include <string>

namespace orthrus {

/// Hears how a pull goes on. Called from the thread that pulls.
class PullObserver {
 public:
  virtual ~PullObserver() = default;
  /// Something that the user should know: a retry, a wait for another process. One line.
  virtual void on_notice(const std::string& text) = 0;
  /// Bytes of `file` and of all files that are there by now, and of all in the end. Often.
  virtual void on_progress(const std::string& file, uint64_t done, uint64_t total) = 0;
};

}  // namespace orthrus
