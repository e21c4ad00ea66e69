#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace orthrus {

/// A model on the Hugging Face hub, as `pull` and `-m` name it.
struct HubName {
  std::string repository;  ///< "OWNER/NAME"
  std::string quant;       ///< "Q4_K_M" of "OWNER/NAME:Q4_K_M", or "": none was named
};

/// nullopt where the text is not OWNER/NAME or OWNER/NAME:QUANT by the hub's rules: letters, digits
/// and ".", "_", "-", at most 96 characters, no "--" or "..", "." and "-" neither first nor last in
/// either part.
std::optional<HubName> parse_hub_name(std::string_view text);

/// Whether the text is the full name of a commit: 40 hex digits in lower case.
bool is_commit_hash(std::string_view text);

}  // namespace orthrus
