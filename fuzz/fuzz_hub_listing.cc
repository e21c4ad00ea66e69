// The hub's list of a repository's files, and what would be chosen of it.
#include "formats/hub_name.h"
#include "hub/listing.h"
#include "hub/selection.h"
#include "parser_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace orthrus;
  return fuzz::run_parser([&] {
    const HubListing listing = parse_hub_listing(fuzz::as_text(data, size), "input");
    for (const HubFile& file : listing.files) {
      if (file.path.starts_with('/') || ("/" + file.path + "/").find("/../") != std::string::npos) {
        std::abort();
      }
    }
    for (const char* quant : {"", "Q4_K_M"}) {
      fuzz::run_parser([&] { select_files(listing, {"owner/name", quant}, {}, {"*.md"}); });
    }
  });
}
