#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "formats/hub_name.h"
#include "hub/listing.h"

namespace orthrus {

/// Which files of a repository to fetch.
struct Selection {
  std::vector<HubFile> files;
  std::string opens;  ///< path of the GGUF file that a model is opened by, or "": the folder
  std::string note;   ///< what was chosen among several, one line, or ""
  size_t left_out = 0;
  uint64_t left_out_bytes = 0;  ///< as far as the listing says
};

/// As the hub's Python package has it: "*" and "?" also stand for "/", "[...]" is a set, a pattern
/// that ends in "/" means all below that folder.
bool matches_pattern(const std::string& pattern, const std::string& path);

/// With `include`: the files that match any of these patterns. Without: what the engine reads, that
/// is config, tokenizer, template and safetensors; or, where a quant is named or there are no
/// safetensors, one GGUF model. Files that match `exclude` are out in any case. Error(kInput) where
/// nothing is left or the engine could not open it, Error(kUsage) where the name fits several.
Selection select_files(const HubListing& listing, const HubName& name,
                       const std::vector<std::string>& include,
                       const std::vector<std::string>& exclude);

}  // namespace orthrus
