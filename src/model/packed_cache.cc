#include "model/packed_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/checksum.h"
#include "base/error.h"
#include "base/mapped_file.h"
#include "formats/file_exists.h"
#include "model/packed_cache_header.h"

namespace orthrus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr size_t kAlignment = 64;                 // of a tensor
constexpr size_t kSlice = size_t{4} << 20;        // bytes of a tensor that have a checksum
constexpr int64_t kMaxExtent = int64_t{1} << 28;  // rows or columns
constexpr double kFreeShare = 1.02;  // of the file's size: other programs want some of the disk

size_t rounded_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

std::span<const std::byte> bytes_of(const std::vector<float>& values) {
  return std::as_bytes(std::span(values));
}

/// A piece of a tensor and its checksum, computed or expected.
struct Slice {
  std::span<const std::byte> bytes;
  uint64_t sum = 0;
};

void add_slices(std::span<const std::byte> bytes, std::vector<Slice>& slices) {
  for (size_t at = 0; at < bytes.size(); at += kSlice) {
    slices.push_back({bytes.subspan(at, std::min(kSlice, bytes.size() - at))});
  }
}

/// fn(slice) for all of them, by all threads, in order.
template <typename Fn>
void for_slices(std::vector<Slice>& slices, ThreadPool& pool, Fn fn) {
  std::atomic<size_t> next{0};
  pool.run([&](int) {
    for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < slices.size();) {
      fn(slices[i]);
    }
  });
}

// --- writing

/// The tensors in the order of the file, as bytes, and their descriptions.
class FileLayout {
 public:
  FileLayout(const LoadedTensors& tensors, ThreadPool& pool) {
    for (const auto& [name, matrix] : tensors.matrices()) {
      add(name, matrix.form(), {matrix.rows(), matrix.cols()}, matrix.data());
    }
    for (const auto& [name, values] : tensors.vectors()) {
      add(name, TensorType::kF32, {static_cast<int64_t>(values.size())}, bytes_of(values));
    }
    for_slices(slices_, pool, [](Slice& slice) { slice.sum = checksum(slice.bytes); });
    for (size_t i = 0; i < entries_.size(); ++i) {
      json sums = json::array();
      for (size_t s = first_slice_[i]; s < first_slice_[i + 1]; ++s) sums.push_back(slices_[s].sum);
      entries_[i]["checksums"] = std::move(sums);
    }
  }

  const json& entries() const { return entries_; }
  const std::vector<std::span<const std::byte>>& tensors() const { return tensors_; }
  size_t bytes() const { return bytes_; }

 private:
  void add(const std::string& name, TensorType type, const std::vector<int64_t>& shape,
           std::span<const std::byte> bytes) {
    entries_.push_back(
        {{"name", name}, {"type", traits(type).name}, {"shape", shape}, {"at", bytes_}});
    tensors_.push_back(bytes);
    bytes_ += rounded_up(bytes.size(), kAlignment);
    add_slices(bytes, slices_);
    first_slice_.push_back(slices_.size());
  }

  json entries_ = json::array();
  std::vector<std::span<const std::byte>> tensors_;
  std::vector<Slice> slices_;
  std::vector<size_t> first_slice_ = {0};  // of each tensor, and the end
  size_t bytes_ = 0;
};

void check_room(const std::string& path, size_t bytes) {
  std::error_code error;
  const fs::space_info space = fs::space(fs::path(path).parent_path(), error);
  const auto needed = static_cast<uintmax_t>(kFreeShare * static_cast<double>(bytes));
  if (!error && space.available < needed) {
    fail("{}: needs {} bytes on the disk, {} are free", path, needed, space.available);
  }
}

void append_zeros(AtomicFile& file, size_t count) {
  static constexpr std::array<std::byte, kAlignment> kZeros{};
  file.append(std::span(kZeros).first(count));
}

// --- reading

/// Checks a file from the front on; everything is compared with the file's size before it is used.
class FileReader {
 public:
  FileReader(const std::string& path, const std::string& key)
      : path_(path), file_(std::make_shared<MappedFile>(path)) {
    const PackedCacheHeader header = read_packed_cache_header(file_->bytes(), path_);
    data_ = header.data;
    if (field(header.fields, "version") != kPackVersion) {
      fail("{}: written by another version of the program", path_);
    }
    if (field(header.fields, "key") != key)
      fail("{}: made of another state of the model's files", path_);
    const json& tensors = field(header.fields, "tensors");
    if (!tensors.is_array()) damaged("its header lists no tensors");
    for (const json& entry : tensors) add(entry);
  }

  LoadedTensors read(ThreadPool& pool) {
    file_->expect_all();
    std::atomic<bool> good{true};
    for_slices(slices_, pool, [&](Slice& slice) {
      file_->fetch(slice.bytes);
      if (checksum(slice.bytes) != slice.sum) good = false;
    });
    if (!good) damaged("a checksum differs");
    for (const auto& [name, bytes] : vectors_) {
      std::vector<float> values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      loaded_.add(name, values);
    }
    return std::move(loaded_);
  }

 private:
  [[noreturn]] void damaged(std::string_view what) const { fail("{}: damaged: {}", path_, what); }

  const json& field(const json& object, const char* name) const {
    return packed_cache_field(object, name, path_);
  }

  int64_t number(const json& value, int64_t least, int64_t most) const {
    if (!value.is_number_integer()) damaged("its header has a number that is none");
    const auto result = value.get<int64_t>();
    if (result < least || result > most) damaged("its header has a number out of range");
    return result;
  }

  void add(const json& entry) {
    if (!entry.is_object()) damaged("its header lists something that is no tensor");
    const json& name = field(entry, "name");
    const json& type_name = field(entry, "type");
    const json& shape = field(entry, "shape");
    if (!name.is_string() || !type_name.is_string() || !shape.is_array()) {
      damaged("its header has a tensor without name, type or shape");
    }
    const auto type = tensor_type_from_name(type_name.get<std::string>());
    if (!type || *type == TensorType::kI8) damaged("its header has an unknown type");
    if (shape.size() == 2) {
      const int64_t rows = number(shape[0], 1, kMaxExtent);
      const int64_t cols = number(shape[1], 1, kMaxExtent);
      const auto bytes = place(entry, packed_bytes(*type, rows, cols, WeightFormat::kAuto));
      loaded_.add(name.get<std::string>(), PackedMatrix(*type, rows, cols, file_, bytes.data()));
    } else if (shape.size() == 1 && *type == TensorType::kF32) {
      const auto count = static_cast<size_t>(number(shape[0], 0, kMaxExtent));
      vectors_.emplace_back(name.get<std::string>(), place(entry, count * sizeof(float)));
    } else {
      damaged("its header has a tensor that is neither matrix nor vector");
    }
  }

  /// Where a tensor of that size lies; its slices go to those to be checked.
  std::span<const std::byte> place(const json& entry, size_t size) {
    const size_t file_bytes = file_->bytes().size();
    const auto at =
        static_cast<size_t>(number(field(entry, "at"), 0, static_cast<int64_t>(file_bytes)));
    if (at % kAlignment != 0) damaged("a tensor is not aligned");
    if (data_ + at > file_bytes || size > file_bytes - data_ - at) damaged("it was cut");
    const std::span<const std::byte> bytes = file_->bytes().subspan(data_ + at, size);
    const size_t first = slices_.size();
    add_slices(bytes, slices_);
    const json& sums = field(entry, "checksums");
    if (!sums.is_array() || sums.size() != slices_.size() - first) {
      damaged("its header lacks checksums");
    }
    for (size_t i = 0; i < sums.size(); ++i) {
      if (!sums[i].is_number_unsigned()) damaged("its header has a checksum that is no number");
      slices_[first + i].sum = sums[i].get<uint64_t>();
    }
    return bytes;
  }

  const std::string& path_;
  std::shared_ptr<MappedFile> file_;
  size_t data_ = 0;  // where the first tensor begins
  LoadedTensors loaded_;
  std::vector<std::pair<std::string, std::span<const std::byte>>> vectors_;
  std::vector<Slice> slices_;
};

}  // namespace

void LoadedTensors::add(std::string_view name, const PackedMatrix& matrix) {
  if (!matrix_index_.emplace(name, matrices_.size()).second) return;
  matrices_.emplace_back(name, matrix);
}

void LoadedTensors::add(std::string_view name, const std::vector<float>& vector) {
  if (!vector_index_.emplace(name, vectors_.size()).second) return;
  vectors_.emplace_back(name, vector);
}

const PackedMatrix& LoadedTensors::matrix(std::string_view name, int64_t rows, int64_t cols) const {
  const auto found = matrix_index_.find(std::string(name));
  if (found == matrix_index_.end()) fail("tensor {} is missing", name);
  const PackedMatrix& matrix = matrices_[found->second].second;
  if (matrix.rows() != rows || matrix.cols() != cols) {
    fail("tensor {} has shape [{}, {}], expected [{}, {}]", name, matrix.rows(), matrix.cols(),
         rows, cols);
  }
  return matrix;
}

const std::vector<float>& LoadedTensors::vector(std::string_view name, int64_t size) const {
  const auto found = vector_index_.find(std::string(name));
  if (found == vector_index_.end()) fail("tensor {} is missing", name);
  const std::vector<float>& vector = vectors_[found->second].second;
  if (static_cast<int64_t>(vector.size()) != size) {
    fail("tensor {} has {} values, expected {}", name, vector.size(), size);
  }
  return vector;
}

void write_packed_cache(const std::string& path, const std::string& key,
                        const LoadedTensors& tensors, ThreadPool& pool) {
  const FileLayout layout(tensors, pool);
  const std::vector<std::byte> front = write_packed_cache_header(
      {{"version", kPackVersion}, {"key", key}, {"tensors", layout.entries()}});
  check_room(path, front.size() + layout.bytes());
  AtomicFile file(path);
  file.append(front);
  for (const std::span<const std::byte> bytes : layout.tensors()) {
    file.append(bytes);
    append_zeros(file, rounded_up(bytes.size(), kAlignment) - bytes.size());
  }
  file.commit();
}

std::optional<LoadedTensors> read_packed_cache(const std::string& path, const std::string& key,
                                               ThreadPool& pool) {
  if (!file_exists(path)) return std::nullopt;
  return FileReader(path, key).read(pool);
}

}  // namespace orthrus
