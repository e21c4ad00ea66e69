#include "base/user_folders.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "base/error.h"

namespace orthrus {

std::string home_folder() {
  const char* home = std::getenv("HOME");
  if (!home || !*home) {
    const passwd* user = ::getpwuid(::getuid());
    home = user ? user->pw_dir : nullptr;
  }
  if (!home || !*home) fail("no home directory: set HOME or XDG_CACHE_HOME");
  return home;
}

std::string user_cache_folder() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  return xdg && *xdg == '/' ? xdg : home_folder() + "/.cache";
}

}  // namespace orthrus
