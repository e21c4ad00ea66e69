#include "server/page.h"

#include "server/page_files.inc"  // kPageFiles: cmake/page.cmake writes it

namespace orthrus {

std::span<const PageFile> page_files() { return kPageFiles; }

}  // namespace orthrus
