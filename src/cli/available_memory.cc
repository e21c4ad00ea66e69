#include "cli/available_memory.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace orthrus {
namespace {

int64_t kernel_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  while (file >> key >> kilobytes) {
    if (key == "MemAvailable:") return kilobytes * 1024;
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
  const int64_t available = kernel_available();
  const int64_t limit = read_number("/sys/fs/cgroup/memory.max");
  const int64_t used = read_number("/sys/fs/cgroup/memory.current");
  if (limit < 0 || used < 0) return available;
  const int64_t left = std::max<int64_t>(limit - used, 0);
  return available > 0 ? std::min(available, left) : left;
}

}  // namespace orthrus
