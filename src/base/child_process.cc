#include "base/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "base/error.h"

namespace orthrus {
namespace {

/// The child's part. After a fork of a process with threads only calls that are safe in signal
/// handlers are allowed here. `report` takes the errno of a program that does not start.
[[noreturn]] void become(char* const* argv, pid_t parent, int report) {
  // SIGKILL, because a program may ignore or delay every other one.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended before that was set
  if (::dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) ::execvp(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = ::write(report, &error, sizeof error);
  ::_exit(127);
}

/// The errno that the child reports; 0 where the end of the pipe says that it became the program.
int start_error(int report) {
  int error = 0;
  while (::read(report, &error, sizeof error) < 0) {
    ORTHRUS_CHECK(errno == EINTR);
  }
  return error;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    ORTHRUS_CHECK(errno == EINTR);
  }
  return status;
}

}  // namespace

ChildExit run_child(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  int report[2];
  if (::pipe2(report, O_CLOEXEC) < 0) return {.start_error = errno};
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  const int fork_error = errno;
  if (child == 0) become(argv.data(), parent, report[1]);
  ::close(report[1]);
  const int error = child < 0 ? fork_error : start_error(report[0]);
  ::close(report[0]);
  if (child < 0) return {.start_error = error};
  const int status = wait_for(child);
  if (error != 0) return {.start_error = error};
  if (WIFEXITED(status)) return {.code = WEXITSTATUS(status)};
  return {.signal = WTERMSIG(status)};
}

}  // namespace orthrus
