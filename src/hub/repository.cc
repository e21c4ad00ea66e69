#include "hub/repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "formats/printable.h"
#include "hub/blob_file.h"
#include "hub/content_digest.h"
#include "hub/retries.h"
#include "hub/url.h"

namespace orthrus {
namespace {

constexpr size_t kMaxListing = 64 << 20;
constexpr uint64_t kProgress = 1 << 20;  // bytes after which a cut connection counts as a first one

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Where the bytes of an answer of status 206 begin: "bytes FIRST-LAST/ALL".
std::optional<uint64_t> first_byte(const HttpResponse& response) {
  const std::string range = response.header("content-range");
  constexpr std::string_view kUnit = "bytes ";
  const size_t dash = range.find('-');
  if (!range.starts_with(kUnit) || dash == std::string::npos) return std::nullopt;
  return parse_number(std::string_view(range).substr(kUnit.size(), dash - kUnit.size()));
}

}  // namespace

HubRepository::HubRepository(const HubSettings& settings, std::string repository,
                             std::string revision, int retries, std::stop_token stop,
                             PullObserver& observer)
    : settings_(settings),
      repository_(std::move(repository)),
      revision_(std::move(revision)),
      retries_(retries),
      stop_(std::move(stop)),
      observer_(observer),
      client_(settings, stop_) {}

void HubRepository::refuse(const HttpResponse& response, const std::string& what) const {
  const bool token = !settings_.token.empty();
  const std::string code = response.header("x-error-code");
  const std::string page = settings_.endpoint + "/" + repository_;
  if (!response.error.empty() || !response.from_hub) fail("{}: {}", what, reason_of(response));
  if (response.status == 404 && code == "RevisionNotFound") {
    fail("{}: no revision {} on the hub", repository_, printable(revision_));
  }
  if (response.status == 404) fail("{}: not found on {}", what, settings_.endpoint);
  if (code == "GatedRepo" || response.status == 403) {
    fail("{}: access is restricted: accept the terms at {} and {}", what, page,
         token ? "see that HF_TOKEN belongs to that account and may read it" : "set HF_TOKEN");
  }
  if (response.status == 401) {
    fail("{}: no such public model on {}; for a private one {}", what, settings_.endpoint,
         token ? "another HF_TOKEN is needed: this one is refused" : "set HF_TOKEN");
  }
  fail("{}: {}", what, reason_of(response));
}

HttpResponse HubRepository::ask(HttpRequest request, const std::string& what, std::string* body) {
  Retries retries(retries_, what, stop_, observer_);
  if (body) {
    request.on_body = [&](const HttpResponse&, std::span<const std::byte> bytes) {
      if (body->size() + bytes.size() > kMaxListing) {
        fail("{}: an answer of more than {} bytes", what, kMaxListing);
      }
      body->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
  }
  while (true) {
    if (body) body->clear();
    HttpResponse response = client_.send(request);
    if (response.error.empty() && response.status < 400) return response;
    if (!Retries::worth_it(response)) refuse(response, what);
    retries.wait(reason_of(response), response.retry_after);
  }
}

HubListing HubRepository::list() {
  std::string text;
  HttpRequest request;
  request.url = fmt::format("{}/api/models/{}/revision/{}?blobs=true", settings_.endpoint,
                            repository_, url_escape(revision_));
  ask(std::move(request), repository_, &text);
  return parse_hub_listing(text, fmt::format("{}: the hub's list of files", repository_));
}

std::string HubRepository::file_url(const HubFile& file, const std::string& commit) const {
  return fmt::format("{}/{}/resolve/{}/{}", settings_.endpoint, repository_, commit,
                     url_escape(file.path, true));
}

void HubRepository::complete(HubFile& file, const std::string& commit) {
  if (file.size && !file.content.empty()) return;
  const std::string what = fmt::format("{}: {}", repository_, printable(file.path));
  const HttpResponse response = ask({.url = file_url(file, commit), .head = true}, what);
  // A redirect to a storage host tells in headers of its own what lies there.
  const bool linked = !response.header("x-linked-etag").empty();
  file.content = content_name_of_etag(response.header(linked ? "x-linked-etag" : "etag"));
  file.size = parse_number(response.header(linked ? "x-linked-size" : "content-length"));
  if (!is_content_name(file.content) || !file.size) {
    fail("{}: the hub tells no {}, without which it cannot be checked", what,
         file.size ? "hash (ETag)" : "size");
  }
}

void HubRepository::fetch_rest(BlobFile& blob, const HubFile& file, const std::string& commit,
                               uint64_t done, uint64_t total) {
  const std::string what = fmt::format("{}: {}", repository_, printable(file.path));
  Retries retries(retries_, what, stop_, observer_);
  uint64_t furthest = blob.held();
  while (!blob.is_whole()) {
    const uint64_t before = blob.held();
    HttpRequest request{.url = file_url(file, commit), .offset = before};
    bool begun = false;
    request.on_body = [&](const HttpResponse& response, std::span<const std::byte> bytes) {
      const uint64_t first = response.status == 206 ? first_byte(response).value_or(0) : 0;
      // A server may ignore what was asked for and send all.
      if (!begun && first != blob.held()) blob.restart();
      if (!begun && first != blob.held()) {
        fail("{}: the server sends it from byte {}, asked for {}", what, first, before);
      }
      begun = true;
      blob.append(bytes);
      observer_.on_progress(file.path, done + blob.held(), total);
    };
    const HttpResponse response = client_.send(request);
    if (blob.is_whole()) return;
    if (response.status == 416) blob.restart();  // beyond the end of what the server has
    const bool cut = response.error.empty() && response.status < 400;
    if (!cut && response.status != 416 && !Retries::worth_it(response)) refuse(response, what);
    // Further than ever, not than before: a server that always sends all from the start would else
    // be asked for ever.
    if (blob.held() > furthest + kProgress) retries.restart();
    furthest = std::max(furthest, blob.held());
    retries.wait(cut ? fmt::format("the server ended after {} of {} bytes", blob.held(), *file.size)
                     : reason_of(response),
                 response.retry_after);
  }
}

void HubRepository::fetch(const HubFile& file, const std::string& commit,
                          const std::string& blob_path, uint64_t done, uint64_t total) {
  BlobFile blob(blob_path, fmt::format("{}: {}", repository_, printable(file.path)), file.content,
                file.size.value(), stop_);
  observer_.on_progress(file.path, done + blob.held(), total);
  fetch_rest(blob, file, commit, done, total);
  blob.finish();
}

}  // namespace orthrus
