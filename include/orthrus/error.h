#pragma once

#include <stdexcept>
#include <string>

namespace orthrus {

/// Whose fault an error is; decides the exit code of the program and the status of the server.
enum class ErrorKind {
  kUsage,    ///< a wrong flag or option: exit code 2, HTTP 400
  kInput,    ///< a file or request that cannot be used: exit code 1, HTTP 400
  kInternal  ///< a broken invariant or a failed system call: exit code 1, HTTP 500
};

/// The one exception type of the library: a single line that says what was wrong, where, what was
/// expected and what was found.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace orthrus
