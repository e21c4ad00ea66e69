#include "server/page.h"

#include <algorithm>

#include "server/page_files.inc"  // kPageFiles: cmake/page.cmake writes it

namespace orthrus {

const PageFile* find_page_file(std::string_view path) {
  const auto* file = std::find_if(std::begin(kPageFiles), std::end(kPageFiles),
                                  [&](const PageFile& other) { return other.path == path; });
  return file == std::end(kPageFiles) ? nullptr : file;
}

}  // namespace orthrus
