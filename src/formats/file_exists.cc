#include "formats/file_exists.h"

#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace orthrus {

bool file_exists(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  // First the name itself, without following a link.
  const fs::file_type name = fs::symlink_status(path, error).type();
  if (name == fs::file_type::not_found) return false;
  if (name == fs::file_type::none) fail("cannot open {}: {}", path, error.message());
  const fs::file_type target = fs::status(path, error).type();
  if (target == fs::file_type::not_found) fail("cannot open {}: a link that leads nowhere", path);
  if (target == fs::file_type::none) fail("cannot open {}: {}", path, error.message());
  return true;
}

}  // namespace orthrus
