#include "hub/pull.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/hub_cache.h"
#include "formats/printable.h"
#include "hub/blob_file.h"
#include "hub/file_lock.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxRevision = 255;

/// It becomes a path below refs/ and part of an address.
bool is_revision(std::string_view text) {
  if (text.empty() || text.size() > kMaxRevision || text.front() == '/' || text.back() == '/') {
    return false;
  }
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/' || c == '+';
  };
  return std::all_of(text.begin(), text.end(), plain) &&
         text.find("..") == std::string_view::npos && text.find("//") == std::string_view::npos &&
         text.find("./") == std::string_view::npos;
}

void create_folders(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail("{}: cannot be created: {}", folder.string(), error.message());
}

/// Bytes of a file, 0 where there is none.
uint64_t size_on_disk(const fs::path& path) {
  std::error_code error;
  const uint64_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

bool has_size(const fs::path& path, const HubFile& file) {
  std::error_code error;
  return fs::is_regular_file(path, error) && size_on_disk(path) == file.size;
}

/// The nearest folder above that exists, for questions to the file system.
fs::path existing_parent(fs::path path) {
  std::error_code error;
  while (!fs::exists(path, error) && path.has_relative_path()) path = path.parent_path();
  return path;
}

const HubSettings& online(const HubSettings& settings, const std::string& repository) {
  if (settings.offline) fail("pull {}: HF_HUB_OFFLINE is set: nothing is fetched", repository);
  return settings;
}

std::string megabytes(uint64_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1e6);
}

}  // namespace

bool PullPlan::is_there() const {
  return std::all_of(files.begin(), files.end(), [](const PulledFile& file) { return file.there; });
}

Pull::Pull(const HubSettings& settings, PullRequest request, std::stop_token stop,
           PullObserver& observer)
    : request_(std::move(request)),
      stop_(std::move(stop)),
      observer_(observer),
      folder_(hub_cache_folder() + "/" + hub_folder_name(request_.name.repository)),
      locks_(hub_cache_folder() + "/.locks/" + hub_folder_name(request_.name.repository)),
      hub_(online(settings, request_.name.repository), request_.name.repository, request_.revision,
           request_.retries, stop_, observer) {
  if (!is_revision(request_.revision)) {
    fail_usage("--revision: expected a branch, tag or commit, found \"{}\"",
               printable(request_.revision));
  }
}

std::string Pull::blob_path(const HubFile& file) const {
  return folder_ + "/blobs/" + file.content;
}

std::string Pull::snapshot_path(const HubFile& file, const std::string& commit) const {
  return hub_snapshot_folder(request_.name.repository, commit) + "/" + file.path;
}

bool Pull::is_there(const HubFile& file, const std::string& commit) const {
  // Without links huggingface_hub puts the files themselves into the snapshot.
  return has_size(blob_path(file), file) || has_size(snapshot_path(file, commit), file);
}

PullPlan Pull::plan() {
  const HubListing listing = hub_.list();
  Selection chosen = select_files(listing, request_.name, request_.include, request_.exclude);
  PullPlan plan;
  plan.commit = listing.commit;
  plan.note = std::move(chosen.note);
  plan.left_out = chosen.left_out;
  plan.left_out_bytes = chosen.left_out_bytes;
  plan.opens = hub_snapshot_folder(request_.name.repository, plan.commit);
  if (!chosen.opens.empty()) plan.opens += "/" + chosen.opens;
  for (HubFile& file : chosen.files) {
    hub_.complete(file, plan.commit);
    const bool there = is_there(file, plan.commit);
    plan.bytes += *file.size;
    if (!there) plan.missing_bytes += *file.size;
    plan.files.push_back({std::move(file), there});
  }
  return plan;
}

void Pull::check_space(const PullPlan& plan) const {
  uint64_t needed = plan.missing_bytes;
  for (const PulledFile& entry : plan.files) {
    if (entry.there) continue;
    needed -= std::min(needed, size_on_disk(incomplete_path(blob_path(entry.file))));
  }
  const fs::path folder = existing_parent(folder_);
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (!error && space.available < needed) {
    fail("{}: {} MB to fetch, and only {} MB are free in {}", request_.name.repository,
         megabytes(needed), megabytes(space.available), folder.string());
  }
}

void Pull::run(const PullPlan& plan) {
  check_space(plan);
  create_folders(folder_ + "/blobs");
  create_folders(locks_);
  uint64_t done = plan.bytes - plan.missing_bytes;
  for (const PulledFile& entry : plan.files) {
    if (entry.there) continue;
    fetch(entry, plan.commit, done, plan.bytes);
    done += *entry.file.size;
  }
  for (const PulledFile& entry : plan.files) link(entry.file, plan.commit);
  if (request_.revision == plan.commit) return;
  const fs::path ref = fs::path(folder_) / "refs" / request_.revision;
  create_folders(ref.parent_path());
  write_file_atomically(ref.string(), plan.commit);
}

void Pull::fetch(const PulledFile& entry, const std::string& commit, uint64_t done,
                 uint64_t total) {
  const HubFile& file = entry.file;
  const FileLock lock(locks_ + "/" + file.content + ".lock",
                      fmt::format("{}: {}", request_.name.repository, printable(file.path)), stop_,
                      observer_);
  if (is_there(file, commit)) return;  // who had the lock has fetched it
  hub_.fetch(file, commit, blob_path(file), done, total);
}

void Pull::link(const HubFile& file, const std::string& commit) const {
  const fs::path path = snapshot_path(file, commit);
  std::error_code error;
  if (fs::is_regular_file(fs::symlink_status(path, error)) && has_size(path, file)) return;
  create_folders(path.parent_path());
  const fs::path target = fs::path(blob_path(file)).lexically_relative(path.parent_path());
  if (fs::read_symlink(path, error) == target) return;
  const fs::path fresh = path.string() + fmt::format(".tmp{}", ::getpid());
  fs::remove(fresh, error);
  fs::create_symlink(target, fresh, error);
  if (!error) fs::rename(fresh, path, error);
  if (error) fail("{}: cannot be linked: {}", path.string(), error.message());
}

}  // namespace orthrus
