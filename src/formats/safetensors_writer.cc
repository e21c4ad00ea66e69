#include "formats/safetensors_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.h"
#include "base/error.h"
#include "formats/tensor_layout.h"

namespace orthrus {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kAlignment = 8;  // of the data, as the format asks of writers

/// Length, JSON and padding; adds up the data bytes in `data_bytes`.
std::string make_header(const std::vector<SafetensorsEntry>& entries,
                        const std::map<std::string, std::string>& metadata, uint64_t& data_bytes) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const SafetensorsEntry& entry : entries) {
    std::optional<uint64_t> bytes = tensor_bytes(entry.type, entry.shape);
    ORTHRUS_CHECK(bytes && traits(entry.type).block_elements == 1);
    header[entry.name] = {{"dtype", std::string(traits(entry.type).name)},
                          {"shape", entry.shape},
                          {"data_offsets", {data_bytes, data_bytes + *bytes}}};
    data_bytes += *bytes;
  }
  // Text from outside (metadata) may not be UTF-8: replaced rather than refused.
  std::string json = header.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  json.resize((json.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) {
    out.push_back(static_cast<char>(uint64_t{json.size()} >> shift & 0xff));
  }
  return out + json;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path,
                                     const std::vector<SafetensorsEntry>& entries,
                                     const std::map<std::string, std::string>& metadata)
    : path_(path), temporary_(fmt::format("{}.{}.tmp", path, ::getpid())) {
  check_replaceable(path);
  const std::string header = make_header(entries, metadata, expected_);
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail("cannot write {}: {}", path, std::strerror(errno));
  buffer_.reserve(kBufferBytes);
  const auto bytes = std::as_bytes(std::span(header));
  buffer_.assign(bytes.begin(), bytes.end());
}

SafetensorsWriter::~SafetensorsWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  appended_ += bytes.size();
  ORTHRUS_CHECK(appended_ <= expected_);
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

void SafetensorsWriter::commit() {
  ORTHRUS_CHECK(appended_ == expected_);
  flush();
  if (::fsync(fd_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail_write();
  ::close(fd_);
  fd_ = -1;
}

void SafetensorsWriter::flush() {
  std::span<const std::byte> left(buffer_);
  while (!left.empty()) {
    const ssize_t written = ::write(fd_, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_write();
    left = left.subspan(static_cast<size_t>(written));
  }
  buffer_.clear();
}

void SafetensorsWriter::fail_write() { fail("cannot write {}: {}", path_, std::strerror(errno)); }

}  // namespace orthrus
