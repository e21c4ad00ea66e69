#include "formats/hub_name.h"

#include <algorithm>

namespace orthrus {
namespace {

constexpr size_t kMaxRepository = 96;
constexpr size_t kMaxQuant = 64;

// <cctype> depends on the locale, names of the hub do not.
bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

bool is_name(std::string_view text) {
  const auto border = [](char c) { return c == '.' || c == '-'; };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_character) &&
         !border(text.front()) && !border(text.back()) &&
         text.find("--") == std::string_view::npos && text.find("..") == std::string_view::npos;
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view repository = text.substr(0, colon);
  const size_t slash = repository.find('/');
  if (slash == std::string_view::npos || repository.size() > kMaxRepository) return std::nullopt;
  const std::string_view owner = repository.substr(0, slash), name = repository.substr(slash + 1);
  if (!is_name(owner) || !is_name(name) || name.ends_with(".git")) return std::nullopt;
  if (colon == std::string_view::npos) return HubName{std::string(repository), {}};
  const std::string_view quant = text.substr(colon + 1);
  if (!is_name(quant) || quant.size() > kMaxQuant) return std::nullopt;
  return HubName{std::string(repository), std::string(quant)};
}

bool is_commit_hash(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace orthrus
