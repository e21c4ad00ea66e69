#include "base/child_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace orthrus {
namespace {

TEST(ChildProcess, SaysHowItEnded) {
  EXPECT_EQ(run_child({"true"}).shell_code(), 0);
  const ChildExit code = run_child({"sh", "-c", "exit 7"});
  EXPECT_EQ(code.code, 7);
  EXPECT_EQ(code.shell_code(), 7);
  const ChildExit signal = run_child({"sh", "-c", "kill -TERM $$"});
  EXPECT_EQ(signal.signal, SIGTERM);
  EXPECT_EQ(signal.shell_code(), 128 + SIGTERM);
}

TEST(ChildProcess, AProgramThatCannotBeStarted) {
  const ChildExit missing = run_child({"orthrus-no-such-program"});
  EXPECT_EQ(missing.start_error, ENOENT);
  EXPECT_EQ(missing.shell_code(), 127);
  EXPECT_EQ(run_child({"/etc/passwd"}).start_error, EACCES);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // none is left behind
  EXPECT_EQ(errno, ECHILD);
}

/// A process that waits in run_child for a shell that became `sleep`. Both hold the writing end of
/// a pipe as their stderr, so that its end comes when both are gone.
struct Parent {
  explicit Parent(const std::string& script) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    out = ends[0];
    pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::_exit(run_child({"sh", "-c", script}).shell_code());
    }
    ::close(ends[1]);
  }
  ~Parent() { ::close(out); }
  Parent(const Parent&) = delete;
  Parent& operator=(const Parent&) = delete;

  /// Bytes that came within the time: 0 at the end of the pipe, -1 where nothing did.
  ssize_t read(int milliseconds) const {
    pollfd wait{out, POLLIN, 0};
    if (::poll(&wait, 1, milliseconds) != 1) return -1;
    std::array<char, 16> bytes{};
    return ::read(out, bytes.data(), bytes.size());
  }

  int out = -1;
  pid_t pid = -1;
};

TEST(ChildProcess, DoesNotOutliveItsParent) {
  for (const int signal : {SIGTERM, SIGINT, SIGKILL}) {
    // It would hear neither of the first two.
    const Parent parent("trap '' TERM INT; echo up; exec sleep 60");
    ASSERT_EQ(parent.read(20'000), 3) << "the shell did not start";
    EXPECT_EQ(parent.read(50), -1) << "it ended by itself";
    ASSERT_EQ(::kill(parent.pid, signal), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(parent.pid, &status, 0), parent.pid);
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(parent.read(20'000), 0) << "it outlived its parent, ended by signal " << signal;
  }
}

}  // namespace
}  // namespace orthrus
