#include "formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "test_files.h"

namespace orthrus {
namespace {

using testing::as_bytes;
using testing::TempDir;

std::string length_bytes(uint64_t length) {
  return {reinterpret_cast<const char*>(&length), sizeof length};
}

std::string file_of(const std::string& header, const std::string& data) {
  return length_bytes(header.size()) + header + data;
}

SafetensorsSource open(const std::string& bytes) { return {as_bytes(bytes), "f"}; }

std::string error_of(const std::string& bytes) {
  return testing::input_error([&] { open(bytes); });
}

#define EXPECT_REFUSED(bytes, part)                          \
  do {                                                       \
    const std::string text_ = error_of(bytes);               \
    EXPECT_NE(text_.find(part), std::string::npos) << text_; \
  } while (false)

const char kGood[] = R"({"__metadata__":{"format":"pt","block_size":"8"},)"
                     R"("a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
                     R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},)"
                     R"("steps":{"dtype":"I64","shape":[1],"data_offsets":[14,22]}})";

TEST(Safetensors, ReadsTensorsAndMetadata) {
  const std::string bytes = file_of(kGood, std::string(21, 'x') + 'y');
  SafetensorsSource source = open(bytes);
  ASSERT_EQ(source.tensors().size(), 2u);
  const TensorInfo* b = source.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, TensorType::kBF16);
  EXPECT_EQ(b->shape, std::vector<int64_t>{3});
  EXPECT_EQ(b->data.size(), 6u);
  EXPECT_EQ(b->data.data() - as_bytes(bytes).data(),
            static_cast<ptrdiff_t>(8 + std::strlen(kGood) + 8));
  EXPECT_EQ(source.metadata().at("block_size"), "8");
  EXPECT_EQ(source.find("c"), nullptr);
}

TEST(Safetensors, RequireNamesWhatIsWrong) {
  const std::string bytes = file_of(kGood, std::string(22, 'x'));
  SafetensorsSource source = open(bytes);
  const int64_t right[] = {2, 1}, wrong[] = {1, 2}, one[] = {1};
  EXPECT_EQ(source.require("a", right).name, "a");
  EXPECT_INPUT_ERROR(source.require("a", wrong), "f: tensor a has shape [2, 1], expected [1, 2]");
  EXPECT_INPUT_ERROR(source.require("a", one), "expected [1]");
  EXPECT_INPUT_ERROR(source.require("c", one), "f: tensor c is missing");
  EXPECT_INPUT_ERROR(source.require("steps", one), "tensor steps has type I64");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string bytes = file_of(kGood, std::string(22, 'x'));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut = bytes.substr(0, length);
    EXPECT_FALSE(error_of(cut).empty()) << length;
  }
}

TEST(Safetensors, HostileHeaderLengths) {
  for (uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, uint64_t{1} << 32}) {
    EXPECT_REFUSED(length_bytes(length) + "{}", "not a safetensors file");
  }
  EXPECT_REFUSED(length_bytes(3) + "{}", "header of 3 bytes in a file of 10");
  EXPECT_REFUSED(length_bytes(0), "not valid JSON");
}

TEST(Safetensors, HostileShapesAndOffsets) {
  auto tensor = [](const std::string& type, const std::string& shape, const std::string& offsets) {
    return file_of("{\"a\":{\"dtype\":\"" + type + "\",\"shape\":" + shape +
                       ",\"data_offsets\":" + offsets + "}}",
                   std::string(16, 'x'));
  };
  EXPECT_EQ(open(tensor("F32", "[2,2]", "[0,16]")).tensors().size(), 1u);
  EXPECT_EQ(open(tensor("F32", "[]", "[0,4]")).tensors().size(), 1u);
  EXPECT_REFUSED(tensor("F32", "[4294967296,4294967296]", "[0,16]"), "overflows");
  EXPECT_REFUSED(tensor("F32", "[9223372036854775807]", "[0,16]"), "overflows");
  // 2^62 + 1 floats: 4 * elements wraps to 4 in 64 bits.
  EXPECT_REFUSED(tensor("F32", "[4611686018427387905]", "[0,4]"), "overflows");
  EXPECT_REFUSED(tensor("F32", "[18446744073709551615]", "[0,16]"), "whole number");
  EXPECT_REFUSED(tensor("F32", "[-1]", "[0,16]"), "whole number");
  EXPECT_REFUSED(tensor("F32", "[1.5]", "[0,16]"), "whole number");
  EXPECT_REFUSED(tensor("F32", "[4]", "[0,17]"), "not within the 16 bytes");
  EXPECT_REFUSED(tensor("F32", "[4]", "[16,0]"), "not within");
  EXPECT_REFUSED(tensor("F32", "[4]", "[0]"), "not within");
  EXPECT_REFUSED(tensor("F32", "[3]", "[0,16]"), "16 bytes in the file, expected 12");
  EXPECT_REFUSED(tensor("F32", "[1,1,1,1,1,1,1,1,4]", "[0,16]"), "dimensions");
  EXPECT_REFUSED(tensor("F32", "[[4]]", "[0,16]"), "nested");
  EXPECT_REFUSED(tensor("F32", "4", "[0,16]"), "no list \"shape\"");
}

TEST(Safetensors, MalformedHeaders) {
  EXPECT_REFUSED(file_of("[]", ""), "not a JSON object");
  EXPECT_REFUSED(file_of("{\"a\":1}", ""), "entry a is not an object");
  EXPECT_REFUSED(file_of("{\"a\":[1]}", ""), "entry a is not an object");
  EXPECT_REFUSED(file_of("{\"a\":{}}", ""), "no \"dtype\"");
  EXPECT_REFUSED(file_of("{\"__metadata__\":{\"a\":1}}", ""), "metadata a is not a string");
  EXPECT_REFUSED(file_of("{\"a\\nb\":{}}", ""), "tensor a?b");
  EXPECT_REFUSED(file_of(std::string(100000, '['), ""), "nested");
  const std::string one = R"("a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]})";
  EXPECT_REFUSED(file_of("{" + one + "," + one + "}", "x"), "twice");
}

TEST(Safetensors, OverlapNamesBothTensors) {
  EXPECT_REFUSED(file_of(R"({"a":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},)"
                         R"("b":{"dtype":"I8","shape":[4],"data_offsets":[3,7]}})",
                         std::string(8, 'x')),
                 "tensors a and b overlap");
}

TEST(Safetensors, IndexOpensEveryShard) {
  TempDir dir;
  const std::string entry = R"(":{"dtype":"I8","shape":[2],"data_offsets":[0,2]}})";
  dir.write("one.safetensors", file_of("{\"a" + entry, "12"));
  dir.write("two.safetensors", file_of("{\"b" + entry, "34"));
  const std::string index = R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})";
  dir.write("model.safetensors.index.json", index);
  SafetensorsSource source(dir.path());
  ASSERT_NE(source.find("b"), nullptr);
  EXPECT_EQ(static_cast<char>(source.find("b")->data[1]), '4');
  source.drop(*source.find("b"));
  EXPECT_EQ(static_cast<char>(source.find("b")->data[1]), '4');

  std::filesystem::remove(dir.path() + "/two.safetensors");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "two.safetensors");
  dir.write("two.safetensors", file_of("{\"c" + entry, "34"));
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "tensor b is not in two.safetensors");
  dir.write("two.safetensors", file_of("{\"a" + entry, "34"));
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "tensor a is in another file");
}

TEST(Safetensors, HostileIndex) {
  TempDir dir;
  const std::string name = "model.safetensors.index.json";
  dir.write(name, R"({"weight_map":{"a":"../../etc/passwd"}})");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "not a plain file name");
  dir.write(name, R"({"weight_map":{"a":"."}})");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "not a regular file");
  dir.write(name, R"({"weight_map":[]})");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "no \"weight_map\"");
  dir.write(name, "3");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "no \"weight_map\"");
  dir.write(name, "{");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "not valid JSON");
}

TEST(Safetensors, MissingFiles) {
  TempDir dir;
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path()}, "neither model.safetensors");
  EXPECT_INPUT_ERROR(SafetensorsSource{dir.path() + "/none"}, "No such file");
}

TEST(Safetensors, TinyCheckpoint) {
  SafetensorsSource source(std::string(ORTHRUS_TEST_DATA) + "/tiny/checkpoint");
  EXPECT_EQ(source.tensors().size(), 70u);
  const int64_t shape[] = {128, 192};
  EXPECT_EQ(source.require("model.layers.3.self_attn.k_proj_diff.weight", shape).type,
            TensorType::kBF16);
}

}  // namespace
}  // namespace orthrus
