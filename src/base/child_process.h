#pragma once

#include <string>
#include <vector>

namespace orthrus {

/// How a child process ended: at most one of the three is not 0.
struct ChildExit {
  int start_error = 0;  ///< errno of a program that could not be started
  int signal = 0;       ///< that ended it
  int code = 0;
  /// As a shell counts: 127 for a program that could not be started, 128 and the signal's number.
  int shell_code() const { return start_error ? 127 : signal ? 128 + signal : code; }
};

/// Runs a program from PATH with these arguments (the first is its name) and waits for its end. Its
/// stdout goes to our stderr: ours is for answers. Where the thread that called ends meanwhile
/// (with its process, however that is stopped), the system ends the program too, by SIGKILL.
ChildExit run_child(const std::vector<std::string>& arguments);

}  // namespace orthrus
