#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include "formats/hub_name.h"
#include "hub/observer.h"
#include "hub/repository.h"
#include "hub/selection.h"
#include "hub/settings.h"

namespace orthrus {

struct PullRequest {
  HubName name;
  std::string revision = "main";  ///< a branch, tag or commit
  std::vector<std::string> include, exclude;
  int retries = 5;
};

struct PulledFile {
  HubFile file;
  bool there = false;  ///< in the cache already
};

/// What a pull fetches.
struct PullPlan {
  std::string commit;
  std::vector<PulledFile> files;
  std::string opens;  ///< path of what `-m` opens, once it is there: the snapshot or a file in it
  std::string note;   ///< what was chosen among several, or ""
  size_t left_out = 0;
  uint64_t left_out_bytes = 0;
  uint64_t bytes = 0, missing_bytes = 0;  ///< of all files, of those that are not there

  bool is_there() const;
};

/// Brings one repository from the hub into the cache that it shares with Python's huggingface_hub
/// (formats/hub_cache.h).
class Pull {
 public:
  /// Error(kUsage) for a revision that can be none, Error(kInput) with $HF_HUB_OFFLINE.
  Pull(const HubSettings& settings, PullRequest request, std::stop_token stop,
       PullObserver& observer);

  /// Asks the hub. Nothing is written.
  PullPlan plan();
  /// Fetches what is missing, then shows the files as a snapshot and the revision's name for it: a
  /// pull that was cut leaves no half snapshot. Error(kInput) where there is not enough space.
  void run(const PullPlan& plan);

 private:
  std::string blob_path(const HubFile& file) const;
  std::string snapshot_path(const HubFile& file, const std::string& commit) const;
  bool is_there(const HubFile& file, const std::string& commit) const;
  void check_space(const PullPlan& plan) const;
  void fetch(const PulledFile& entry, const std::string& commit, uint64_t done, uint64_t total);
  void link(const HubFile& file, const std::string& commit) const;

  PullRequest request_;
  std::stop_token stop_;
  PullObserver& observer_;
  std::string folder_;  // of the repository in the cache
  std::string locks_;
  HubRepository hub_;
};

}  // namespace orthrus
