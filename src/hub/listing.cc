#include "hub/listing.h"

#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "formats/hub_name.h"
#include "formats/json.h"
#include "formats/printable.h"
#include "hub/content_digest.h"

namespace orthrus {
namespace {

using nlohmann::json;

constexpr size_t kMaxPath = 1024, kMaxPart = 255;  // bytes
constexpr size_t kMaxFiles = 100'000;

/// Whether a path from outside stays below the folder that it is put in.
bool is_safe_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPath) return false;
  for (char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f || c == '\\') return false;
  }
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPart) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_of(const json* value) {
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<uint64_t> size_of(const json* value) {
  if (!value || !value->is_number_unsigned()) return std::nullopt;
  return value->get<uint64_t>();
}

HubFile parse_file(const json& entry, const std::string& where) {
  HubFile file;
  file.path = text_of(member(entry, "rfilename"));
  if (!is_safe_path(file.path)) {
    fail("{}: a file named \"{}\", expected a path below the repository", where,
         printable(file.path));
  }
  const json* large = member(entry, "lfs");
  const bool is_large = large && large->is_object();
  file.size = size_of(is_large ? member(*large, "size") : member(entry, "size"));
  file.content = text_of(is_large ? member(*large, "sha256") : member(entry, "blobId"));
  if (!is_content_name(file.content)) file.content.clear();
  return file;
}

}  // namespace

HubListing parse_hub_listing(std::string_view text, const std::string& where) {
  const json answer = parse_json(text, where);
  HubListing listing;
  listing.commit = text_of(member(answer, "sha"));
  if (!is_commit_hash(listing.commit)) {
    fail("{}: \"sha\" is \"{}\", expected the hash of a commit", where, printable(listing.commit));
  }
  const json* files = member(answer, "siblings");
  if (!files || !files->is_array()) fail("{}: no list of files in \"siblings\"", where);
  if (files->size() > kMaxFiles) {
    fail("{}: {} files, expected at most {}", where, files->size(), kMaxFiles);
  }
  std::set<std::string> paths;
  for (const json& entry : *files) {
    listing.files.push_back(parse_file(entry, where));
    if (!paths.insert(listing.files.back().path).second) {
      fail("{}: two files named \"{}\"", where, printable(listing.files.back().path));
    }
  }
  return listing;
}

}  // namespace orthrus
