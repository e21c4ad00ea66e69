#include "base/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace orthrus {
namespace {

/// The number behind a word at the start of a line; 0 where there is none.
int64_t find_number(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  std::string key;
  int64_t number = 0;
  while (file >> key >> number) {
    if (key == word) return number;
    file.ignore(64, '\n');
  }
  return 0;
}

// -1 where the file is missing or says "max".
int64_t read_number(const std::string& path) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : -1;
}

}  // namespace

int64_t available_memory() {
  const int64_t available = find_number("/proc/meminfo", "MemAvailable:") * 1024;
  const int64_t limit = read_number("/sys/fs/cgroup/memory.max");
  const int64_t used = read_number("/sys/fs/cgroup/memory.current");
  if (limit < 0 || used < 0) return available;
  // Cached files give way when memory is asked for.
  const int64_t cache = find_number("/sys/fs/cgroup/memory.stat", "inactive_file");
  const int64_t left = std::max<int64_t>(limit - used + cache, 0);
  return available > 0 ? std::min(available, left) : left;
}

int64_t resident_memory() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  return file >> all >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

}  // namespace orthrus
