#include "hub/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "base/error.h"
#include "formats/printable.h"
#include "hub/url.h"

namespace orthrus {
namespace {

constexpr int kMaxRedirects = 10;
constexpr size_t kMaxHeaderBytes = 256 << 10;  // of all answers to a request
constexpr size_t kMaxErrorPage = 1 << 20;
constexpr long kConnectSeconds = 15;
constexpr long kBufferBytes = 512 << 10;

struct HeaderList {
  ~HeaderList() { curl_slist_free_all(list); }
  void add(const std::string& line) {
    curl_slist* longer = curl_slist_append(list, line.c_str());
    ORTHRUS_CHECK(longer);
    list = longer;
  }
  curl_slist* list = nullptr;
};

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool has_content(long status) { return status == 200 || status == 206; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' ||
                           text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

/// Failures that another try may not meet. Without a network at all nobody wants to wait for
/// those of connecting.
bool may_pass(CURLcode code, bool reached) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_OPERATION_TIMEDOUT:
      return reached;
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

}  // namespace

/// One request as the callbacks see it. They are called from C: no exception leaves them.
struct HttpClient::Transfer {
  Transfer(const HttpRequest& the_request, const std::stop_token& the_stop)
      : request(the_request), stop(the_stop) {}

  const HttpRequest& request;
  const std::stop_token& stop;
  HttpResponse response;
  std::exception_ptr thrown;

  static size_t on_header(char* data, size_t, size_t size, void* self) {
    return static_cast<Transfer*>(self)->guarded(size, [&](Transfer& transfer) {
      const std::string_view line(data, size);
      transfer.header_bytes += size;
      transfer.last_byte = Clock::now();
      if (transfer.header_bytes > kMaxHeaderBytes) transfer.fail_size("headers", kMaxHeaderBytes);
      if (line.starts_with("HTTP/")) {  // of each answer, "100 Continue" among them
        transfer.response.headers.clear();
        return;
      }
      const size_t colon = line.find(':');
      if (colon == std::string_view::npos) return;
      transfer.response.headers[lower(line.substr(0, colon))] = trimmed(line.substr(colon + 1));
    });
  }

  static size_t on_data(char* data, size_t, size_t size, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    return transfer.guarded(size, [&](Transfer&) {
      curl_easy_getinfo(transfer.curl, CURLINFO_RESPONSE_CODE, &transfer.response.status);
      if (!has_content(transfer.response.status)) {
        transfer.error_page_bytes += size;
        if (transfer.error_page_bytes > kMaxErrorPage)
          transfer.fail_size("error page", kMaxErrorPage);
        return;
      }
      if (transfer.request.on_body)
        transfer.request.on_body(transfer.response, std::as_bytes(std::span(data, size)));
    });
  }

  /// At least once a second, also while nothing comes. curl's own limit of speed looks at the mean
  /// of several seconds.
  static int on_progress(void* self, curl_off_t, curl_off_t received, curl_off_t, curl_off_t) {
    auto& transfer = *static_cast<Transfer*>(self);
    const auto now = Clock::now();
    if (received != transfer.received) transfer.last_byte = now;
    transfer.received = received;
    transfer.stalled = now - transfer.last_byte > transfer.longest_stall;
    return transfer.stalled || transfer.stop.stop_requested() ? 1 : 0;
  }

  template <typename Body>
  size_t guarded(size_t size, const Body& body) {
    try {
      body(*this);
      return size;
    } catch (...) {
      thrown = std::current_exception();
      return size + 1;  // curl ends the transfer
    }
  }

  [[noreturn]] void fail_size(const char* what, size_t most) const {
    fail("{}: {} of more than {} bytes", url_without_query(response.url), what, most);
  }

  using Clock = std::chrono::steady_clock;
  CURL* curl = nullptr;
  std::chrono::seconds longest_stall{};
  Clock::time_point last_byte = Clock::now();
  curl_off_t received = 0;
  bool stalled = false;
  size_t header_bytes = 0, error_page_bytes = 0;
};

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

HttpClient::HttpClient(const HubSettings& settings, std::stop_token stop)
    : settings_(settings), stop_(std::move(stop)), hub_origin_(url_origin(settings.endpoint)) {
  static const CURLcode global = curl_global_init(CURL_GLOBAL_DEFAULT);
  curl_ = global == CURLE_OK ? curl_easy_init() : nullptr;
  ORTHRUS_CHECK(curl_);
  if (hub_origin_.empty()) {
    curl_easy_cleanup(curl_);
    fail_usage("HF_ENDPOINT: expected https://HOST, found \"{}\"", printable(settings.endpoint));
  }
}

HttpClient::~HttpClient() { curl_easy_cleanup(curl_); }

HttpResponse HttpClient::send(const HttpRequest& request) {
  std::string url = request.url;
  for (int hop = 0; hop <= kMaxRedirects; ++hop) {
    HttpResponse response = send_once(request, url);
    if (!response.error.empty() || !is_redirect(response.status)) return response;
    const std::string next = url_resolve(url, response.header("location"));
    const std::string origin = url_origin(next);
    const bool downgraded = url.starts_with("https:") && origin.starts_with("http:");
    if (origin.empty() || downgraded) {
      fail("{}: redirected to {}, expected an {} address", url_without_query(url),
           next.empty() ? "nowhere" : printable(url_without_query(next)),
           downgraded ? "https" : "http or https");
    }
    if (request.head && origin != hub_origin_) return response;
    url = next;
  }
  fail("{}: more than {} redirects", url_without_query(request.url), kMaxRedirects);
}

HttpResponse HttpClient::send_once(const HttpRequest& request, const std::string& url) {
  Transfer transfer{request, stop_};
  transfer.curl = curl_;
  transfer.longest_stall = std::chrono::seconds(settings_.stall_seconds);
  HttpResponse& response = transfer.response;
  response.url = url;
  response.from_hub = url_origin(url) == hub_origin_;
  HeaderList headers;
  if (response.from_hub && !settings_.token.empty()) {
    headers.add("Authorization: Bearer " + settings_.token);
  }
  if (request.offset > 0) headers.add(fmt::format("Range: bytes={}-", request.offset));
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_reset(curl_);  // keeps connections
  const auto set = [&](CURLoption option, auto value) {
    ORTHRUS_CHECK(curl_easy_setopt(curl_, option, value) == CURLE_OK);
  };
  set(CURLOPT_URL, url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);  // send() does, with a look at each
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  if (!settings_.certificates.empty()) set(CURLOPT_CAINFO, settings_.certificates.c_str());
  set(CURLOPT_HTTPHEADER, headers.list);
  set(CURLOPT_USERAGENT, "orthrus");
  set(CURLOPT_NOBODY, request.head ? 1L : 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_ERRORBUFFER, reason);
  set(CURLOPT_BUFFERSIZE, kBufferBytes);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_HEADERFUNCTION, &Transfer::on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer));
  set(CURLOPT_WRITEFUNCTION, &Transfer::on_data);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer));
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(&transfer));
  const CURLcode code = curl_easy_perform(curl_);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (stop_.stop_requested()) fail("interrupted");
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &response.status);
  curl_off_t wait = 0;
  curl_easy_getinfo(curl_, CURLINFO_RETRY_AFTER, &wait);
  response.retry_after = static_cast<long>(wait);
  if (code != CURLE_OK) {
    response.error = transfer.stalled ? fmt::format("not a byte in {} s", settings_.stall_seconds)
                                      : printable(*reason ? reason : curl_easy_strerror(code));
    response.transient = transfer.stalled || may_pass(code, reached_);
  }
  reached_ = reached_ || response.status > 0;
  return response;
}

}  // namespace orthrus
