#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace orthrus {
namespace {
constexpr uintptr_t kHugePage = uintptr_t{2} << 20;
}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: opening a pipe must not wait for a writer.
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail("cannot open {}: {}", path, std::strerror(errno));
  struct stat info {};
  const char* problem = nullptr;
  if (::fstat(fd, &info) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    problem = "not a regular file";
  } else if (info.st_size == 0) {
    problem = "the file is empty";
  }
  void* map = MAP_FAILED;
  if (!problem) {
    size_ = static_cast<size_t>(info.st_size);
    // Unlike the time of modification no program can set it back.
    changed_ = int64_t{info.st_ctim.tv_sec} * 1'000'000'000 + info.st_ctim.tv_nsec;
    map = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) problem = std::strerror(errno);
  }
  ::close(fd);
  if (problem) fail("cannot read {}: {}", path, problem);
  data_ = static_cast<const std::byte*>(map);
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      changed_(other.changed_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(changed_, other.changed_);
  return *this;
}

void MappedFile::expect_all() const {
  ::madvise(const_cast<std::byte*>(data_), size_, MADV_HUGEPAGE);
}

void MappedFile::fetch(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto first = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = first & ~static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE) - 1);
#ifdef MADV_POPULATE_READ
  ::madvise(reinterpret_cast<void*>(begin), first + part.size() - begin, MADV_POPULATE_READ);
#else
  ::madvise(reinterpret_cast<void*>(begin), first + part.size() - begin, MADV_WILLNEED);
#endif
}

void MappedFile::drop(std::span<const std::byte> part) const {
  if (part.empty()) return;
  // A fault maps up to a huge page around it, which goes with the part.
  const auto map = reinterpret_cast<uintptr_t>(data_);
  const auto first = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t begin = std::max(map, first & ~(kHugePage - 1));
  const uintptr_t end =
      std::min(map + size_, (first + part.size() + kHugePage - 1) & ~(kHugePage - 1));
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace orthrus
