#pragma once

#include <stop_token>
#include <string>

#include "formats/hub_name.h"
#include "hub/http.h"
#include "hub/listing.h"
#include "hub/observer.h"

namespace orthrus {

class BlobFile;

/// One revision of a repository, as the hub's API shows it.
class HubRepository {
 public:
  /// `retries`: more tries of a request that failed in a way that may pass.
  HubRepository(const HubSettings& settings, std::string repository, std::string revision,
                int retries, std::stop_token stop, PullObserver& observer);

  /// Its commit and files. Error(kInput) with what to do about it where the hub refuses.
  HubListing list();

  /// Asks for size and content of a file of which the listing did not tell both.
  void complete(HubFile& file, const std::string& commit);

  /// Brings a file's content to `blob_path`, from where an earlier run left off. `done` bytes of
  /// `total` of all files are there already, for the observer. Error(kInput) names the file.
  void fetch(const HubFile& file, const std::string& commit, const std::string& blob_path,
             uint64_t done, uint64_t total);

 private:
  std::string file_url(const HubFile& file, const std::string& commit) const;
  /// Tries again where that may help. `body`: takes the answer's.
  HttpResponse ask(HttpRequest request, const std::string& what, std::string* body = nullptr);
  void fetch_rest(BlobFile& blob, const HubFile& file, const std::string& commit, uint64_t done,
                  uint64_t total);
  [[noreturn]] void refuse(const HttpResponse& response, const std::string& what) const;

  HubSettings settings_;
  std::string repository_, revision_;
  int retries_;
  std::stop_token stop_;
  PullObserver& observer_;
  HttpClient client_;
};

}  // namespace orthrus
