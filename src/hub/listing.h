#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orthrus {

/// A file of a repository on the hub.
struct HubFile {
  std::string path;              ///< relative, with "/"; no part of it is "." or ".."
  std::optional<uint64_t> size;  ///< bytes
  std::string content;           ///< its content's name (digest.h), or "": the listing has none
};

struct HubListing {
  std::string commit;  ///< that the revision names now
  std::vector<HubFile> files;
};

/// The answer of /api/models/OWNER/NAME/revision/REV?blobs=true. Error(kInput) where it is not one,
/// or names a file that would lie outside of its folder.
HubListing parse_hub_listing(std::string_view text, const std::string& where);

}  // namespace orthrus
