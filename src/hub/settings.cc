#include "hub/settings.h"

#include <cctype>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "formats/hub_cache.h"
#include "formats/printable.h"

namespace orthrus {
namespace {

constexpr const char* kPublicHub = "https://huggingface.co";
constexpr size_t kMaxToken = 4096;
constexpr long kMaxStallSeconds = 3600;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool is_true(const char* name) {
  std::string value = variable(name);
  for (char& c : value) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::string read_token_file() {
  const std::string set = variable("HF_TOKEN_PATH");
  std::ifstream file(set.empty() ? hub_home() + "/token" : expand_home(set));
  std::string text(kMaxToken + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// It goes into a header line: nothing in it may end the line. Its text is not for messages.
std::string checked_token(const std::string& text, const char* where) {
  const std::string token = trimmed(text);
  bool good = token.size() <= kMaxToken;
  for (char c : token) good = good && c > 0x20 && c < 0x7f;
  if (!good) fail_usage("{}: expected a token of one line without spaces", where);
  return token;
}

std::string read_endpoint() {
  std::string endpoint = variable("HF_ENDPOINT");
  if (endpoint.empty()) return kPublicHub;
  while (endpoint.ends_with('/')) endpoint.pop_back();
  if (!endpoint.starts_with("https://") && !endpoint.starts_with("http://")) {
    fail_usage("HF_ENDPOINT: expected https://HOST, found \"{}\"", printable(endpoint));
  }
  return endpoint;
}

long read_stall_seconds(long usual) {
  const std::string text = variable("HF_HUB_DOWNLOAD_TIMEOUT");
  if (text.empty()) return usual;
  char* end = nullptr;
  const long seconds = std::strtol(text.c_str(), &end, 10);
  if (*end != '\0' || seconds < 1 || seconds > kMaxStallSeconds) {
    fail_usage("HF_HUB_DOWNLOAD_TIMEOUT: expected 1 to {} seconds, found \"{}\"", kMaxStallSeconds,
               printable(text));
  }
  return seconds;
}

}  // namespace

HubSettings hub_settings() {
  HubSettings settings;
  settings.endpoint = read_endpoint();
  settings.token = checked_token(variable("HF_TOKEN"), "HF_TOKEN");
  if (settings.token.empty() && !is_true("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
    settings.token = checked_token(read_token_file(), "the token file of `hf auth login`");
  }
  settings.offline = is_true("HF_HUB_OFFLINE");
  settings.stall_seconds = read_stall_seconds(settings.stall_seconds);
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"}) {
    if (settings.certificates.empty()) settings.certificates = variable(name);
  }
  return settings;
}

}  // namespace orthrus
