#include "base/aligned_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace orthrus {
namespace {
constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
}  // namespace

AlignedBuffer::AlignedBuffer(size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  const size_t alignment = bytes >= kHugePage ? kHugePage : kPage;
  map_size_ = bytes + (alignment > kPage ? alignment : 0);
  map_ = map_size_ < bytes ? MAP_FAILED
                           : ::mmap(nullptr, map_size_, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (map_ == MAP_FAILED) {
    map_ = nullptr;
    throw Error(ErrorKind::kInternal,
                fmt::format("cannot get {} bytes of memory: {}", bytes, std::strerror(errno)));
  }
  uintptr_t start = (reinterpret_cast<uintptr_t>(map_) + alignment - 1) & ~(alignment - 1);
  data_ = reinterpret_cast<std::byte*>(start);
  if (alignment == kHugePage) ::madvise(data_, bytes, MADV_HUGEPAGE);
}

AlignedBuffer::~AlignedBuffer() {
  if (map_) ::munmap(map_, map_size_);
}

}  // namespace orthrus
