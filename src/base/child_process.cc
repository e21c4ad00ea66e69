#include "base/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace orthrus {

ChildExit run_child(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ORTHRUS_CHECK(::posix_spawn_file_actions_init(&actions) == 0);
  ::posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  int error = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return {.start_error = error};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    ORTHRUS_CHECK(errno == EINTR);
  }
  if (WIFEXITED(status)) return {.code = WEXITSTATUS(status)};
  return {.signal = WTERMSIG(status)};
}

}  // namespace orthrus
