#include "engine/model_file/model_file.h"

#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/model_file/gguf_format.h"
#include "engine/model_file/gguf_writer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using Bytes = std::vector<std::byte>;

void ExpectRefused(const Bytes& bytes, const std::string& text) {
  const absl::Status status = ModelFile::Parse(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
  EXPECT_THAT(std::string(status.message()), HasSubstr(text));
}

// A file written by hand, so that every field can be wrong.
class RawFile {
 public:
  template <typename T>
  RawFile& Put(T value) {
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  RawFile& Text(std::string_view text) {
    Put<uint64_t>(text.size());
    return Raw(text);
  }
  RawFile& Raw(std::string_view text) {
    const auto* const from = reinterpret_cast<const std::byte*>(text.data());
    bytes_.insert(bytes_.end(), from, from + text.size());
    return *this;
  }
  RawFile& Header(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    return Raw("GGUF").Put(version).Put(tensors).Put(keys);
  }
  RawFile& Tensor(std::string_view name, std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    Text(name).Put<uint32_t>(static_cast<uint32_t>(dims.size()));
    for (uint64_t dim : dims) Put(dim);
    return Put(type).Put(offset);
  }
  // Pads to 32 and adds `size` bytes of data.
  RawFile& Data(size_t size) {
    bytes_.resize((bytes_.size() + 31) / 32 * 32 + size);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_;
};

GgufWriter SampleWriter() {
  GgufWriter writer(64);
  writer.AddUint("small", 7);
  writer.AddUint("large", uint64_t{1} << 40);
  writer.AddInt("negative", -3);
  writer.AddFloat("float", 0.5f);
  writer.AddBool("yes", true);
  writer.AddString("text", "h\xc3\xa9");
  const std::vector<std::string> strings = {"a", "", "ccc"};
  writer.AddStrings("strings", strings);
  writer.AddInts("ints", {1, -2});
  writer.AddFloats("floats", {1.0f, 2.5f});
  writer.AddBools("bools", {true, false, true});
  writer.AddTensor("matrix", {4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  writer.AddTensor("vector", {3}, {8, 9, 10});
  return writer;
}

TEST(ModelFileTest, ReadsWhatTheWriterWrote) {
  const Bytes bytes = SampleWriter().Serialize();
  const auto file = ModelFile::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GetUint("small"), 7);
  EXPECT_EQ((*file)->GetUint("large"), uint64_t{1} << 40);
  EXPECT_EQ((*file)->GetFloat("float"), 0.5);
  EXPECT_EQ((*file)->GetBool("yes"), true);
  EXPECT_EQ((*file)->GetString("text"), "h\xc3\xa9");
  EXPECT_THAT(*(*file)->GetStrings("strings"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*(*file)->GetInts("ints"), ElementsAre(1, -2));
  EXPECT_THAT(*(*file)->GetFloats("floats"), ElementsAre(1.0f, 2.5f));
  EXPECT_THAT(*(*file)->GetBools("bools"), ElementsAre(true, false, true));

  ASSERT_EQ((*file)->tensors().size(), 2);
  const TensorView* const vector = (*file)->FindTensor("vector");
  ASSERT_NE(vector, nullptr);
  EXPECT_THAT(vector->dims, ElementsAre(3));
  EXPECT_EQ((vector->data.data() - bytes.data()) % 64, 0);
  ASSERT_EQ(vector->data.size(), 12);
  float last = 0;
  std::memcpy(&last, vector->data.data() + 8, sizeof(last));
  EXPECT_EQ(last, 10);
  EXPECT_EQ((*file)->FindTensor("other"), nullptr);
  EXPECT_EQ((*file)->size_bytes(), bytes.size());
}

TEST(ModelFileTest, AnotherTypeIsNoValue) {
  const Bytes bytes = SampleWriter().Serialize();
  const auto file = ModelFile::Parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GetUint("negative"), std::nullopt);
  EXPECT_EQ((*file)->GetUint("text"), std::nullopt);
  EXPECT_EQ((*file)->GetUint("ints"), std::nullopt);
  EXPECT_EQ((*file)->GetUint("absent"), std::nullopt);
  EXPECT_EQ((*file)->GetFloat("small"), std::nullopt);
  EXPECT_EQ((*file)->GetBool("small"), std::nullopt);
  EXPECT_EQ((*file)->GetString("strings"), std::nullopt);
  EXPECT_EQ((*file)->GetStrings("ints"), std::nullopt);
  EXPECT_EQ((*file)->GetInts("floats"), std::nullopt);
  EXPECT_EQ((*file)->GetInts("small"), std::nullopt);
  EXPECT_EQ((*file)->GetFloats("ints"), std::nullopt);
  EXPECT_EQ((*file)->GetBools("ints"), std::nullopt);
}

TEST(ModelFileTest, ConvertsIntegersOfEveryWidthAndDoubles) {
  RawFile raw;
  raw.Header(0, 9, /*version=*/2);
  raw.Text("u8").Put<uint32_t>(0).Put<uint8_t>(255);
  raw.Text("i8").Put<uint32_t>(1).Put<int8_t>(12);
  raw.Text("u16").Put<uint32_t>(2).Put<uint16_t>(65535);
  raw.Text("i16").Put<uint32_t>(3).Put<int16_t>(-1);
  raw.Text("i64").Put<uint32_t>(11).Put<int64_t>(std::numeric_limits<int64_t>::max());
  raw.Text("f64").Put<uint32_t>(12).Put<double>(0.1);
  raw.Text("i8s").Put<uint32_t>(9).Put<uint32_t>(1).Put<uint64_t>(2).Put<int8_t>(-128).Put<int8_t>(127);
  raw.Text("u64s").Put<uint32_t>(9).Put<uint32_t>(10).Put<uint64_t>(1).Put<uint64_t>(UINT64_MAX);
  raw.Text("empty").Put<uint32_t>(9).Put<uint32_t>(8).Put<uint64_t>(0);
  const auto file = ModelFile::Parse(raw.bytes());
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GetUint("u8"), 255);
  EXPECT_EQ((*file)->GetUint("i8"), 12);
  EXPECT_EQ((*file)->GetUint("u16"), 65535);
  EXPECT_EQ((*file)->GetUint("i16"), std::nullopt);
  EXPECT_EQ((*file)->GetUint("i64"), INT64_MAX);
  EXPECT_EQ((*file)->GetFloat("f64"), 0.1);
  EXPECT_THAT(*(*file)->GetInts("i8s"), ElementsAre(-128, 127));
  EXPECT_EQ((*file)->GetInts("u64s"), std::nullopt);
  EXPECT_THAT(*(*file)->GetStrings("empty"), ElementsAre());
}

TEST(ModelFileTest, RefusesEveryTruncation) {
  const Bytes bytes = SampleWriter().Serialize();
  // The last tensor ends at the file's padding.
  for (size_t size = 0; size + 64 < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    ASSERT_EQ(ModelFile::Parse(cut).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

// Any other byte anywhere is either refused or gives a file whose every part can be read.
TEST(ModelFileTest, NoSingleChangedByteReachesOutsideOfTheFile) {
  const Bytes bytes = SampleWriter().Serialize();
  for (size_t at = 0; at < bytes.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      Bytes changed = bytes;
      changed[at] ^= static_cast<std::byte>(change);
      const auto file = ModelFile::Parse(changed);
      if (!file.ok()) continue;
      for (const TensorView& tensor : (*file)->tensors()) {
        ASSERT_GE(tensor.data.data(), changed.data());
        ASSERT_LE(tensor.data.data() + tensor.data.size(), changed.data() + changed.size());
      }
      (*file)->GetStrings("strings");
    }
  }
}

TEST(ModelFileTest, RefusesBadHeaders) {
  ExpectRefused(Bytes(), "does not begin with \"GGUF\"");
  ExpectRefused(RawFile().Raw("GGML").Put<uint32_t>(3).bytes(), "does not begin with \"GGUF\"");
  ExpectRefused(RawFile().Header(0, 0, 1).bytes(), "version is 1, known are 2 to 3");
  ExpectRefused(RawFile().Header(0, 0, 0x03000000).bytes(), "version is 50331648");
  ExpectRefused(RawFile().Header(UINT64_MAX, 0).bytes(), "tensor count is 18446744073709551615, limit 65536");
  ExpectRefused(RawFile().Header(0, UINT64_MAX).bytes(), "key count is 18446744073709551615, limit 65536");
  ExpectRefused(RawFile().Header(0, 1).bytes(),
                "a metadata key at byte 24 needs 8 bytes, the file has 0 more");
}

TEST(ModelFileTest, RefusesBadMetadata) {
  ExpectRefused(RawFile().Header(0, 1).Put<uint64_t>(UINT64_MAX).bytes(),
                "length 18446744073709551615, limit 65535");
  ExpectRefused(RawFile().Header(0, 1).Text("k").Put<uint32_t>(13).bytes(), "\"k\" has the unknown type 13");
  ExpectRefused(RawFile().Header(0, 1).Text("k").Put<uint32_t>(8).Put<uint64_t>(100).bytes(),
                "needs 100 bytes");
  ExpectRefused(RawFile().Header(0, 1).Text("k").Put<uint32_t>(7).Put<uint8_t>(2).bytes(),
                "holds the bool 2");
  ExpectRefused(RawFile()
                    .Header(0, 2)
                    .Text("k")
                    .Put<uint32_t>(0)
                    .Put<uint8_t>(2)
                    .Text("k")
                    .Put<uint32_t>(0)
                    .Put<uint8_t>(2)
                    .bytes(),
                "the key \"k\" comes twice");
  ExpectRefused(RawFile().Header(0, 1).Text("k\n\xff").Put<uint32_t>(99).bytes(), "\"k\\n\\xff\"");
}

TEST(ModelFileTest, RefusesBadArrays) {
  const auto array = [](uint32_t type, uint64_t count) {
    RawFile raw;
    raw.Header(0, 1).Text("k").Put<uint32_t>(9).Put(type).Put(count);
    return raw;
  };
  ExpectRefused(array(10, uint64_t{1} << 61).bytes(), "has 2305843009213693952 elements, limit 16777216");
  ExpectRefused(array(10, 2).Put<uint64_t>(0).bytes(), "needs 16 bytes, the file has 8 more");
  ExpectRefused(array(8, 1000).bytes(), "needs 8 bytes");
  ExpectRefused(array(13, 0).bytes(), "unknown type 13");
  RawFile nested;
  nested.Header(0, 1).Text("k").Put<uint32_t>(9);
  for (int depth = 0; depth < 5; ++depth) nested.Put<uint32_t>(9).Put<uint64_t>(1);
  ExpectRefused(nested.bytes(), "nests arrays deeper than the limit of 4");
  RawFile allowed;
  allowed.Header(0, 1).Text("k").Put<uint32_t>(9).Put<uint32_t>(9).Put<uint64_t>(2);
  for (int i = 0; i < 2; ++i) allowed.Put<uint32_t>(0).Put<uint64_t>(1).Put<uint8_t>(5);
  EXPECT_TRUE(ModelFile::Parse(allowed.bytes()).ok());
}

TEST(ModelFileTest, RefusesBadAlignment) {
  for (const uint32_t alignment : {0u, 1u, 4u, 24u, 2u << 20}) {
    RawFile raw;
    raw.Header(0, 1).Text(kGgufAlignmentKey).Put<uint32_t>(4).Put(alignment);
    ExpectRefused(raw.bytes(),
                  "general.alignment is " + std::to_string(alignment) + ", must be a power of two");
  }
}

TEST(ModelFileTest, RefusesBadTensors) {
  const auto one = [](std::vector<uint64_t> dims, uint32_t type, uint64_t offset) {
    RawFile raw;
    raw.Header(1, 0).Tensor("t", std::move(dims), type, offset).Data(128);
    return raw.bytes();
  };
  EXPECT_TRUE(ModelFile::Parse(one({32}, 0, 0)).ok());
  ExpectRefused(one({}, 0, 0), "has 0 dimensions, must be 1 to 4");
  ExpectRefused(one({1, 1, 1, 1, 1}, 0, 0), "has 5 dimensions");
  ExpectRefused(one({4, 0}, 0, 0), "has 0 as dimension 1");
  ExpectRefused(one({uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0), "passes 64 bits");
  ExpectRefused(one({uint64_t{1} << 62}, 0, 0), "its size passes 64 bits");
  ExpectRefused(one({(uint64_t{1} << 62) - 1}, 0, 0), "18446744073709551612 bytes at offset 0");
  ExpectRefused(one({16}, 16, 0), "has type 16 (IQ2_XXS), which is not supported");
  ExpectRefused(one({16}, 4, 0), "has type 4 (unknown)");
  ExpectRefused(one({16}, 1000000, 0), "has type 1000000 (unknown)");
  ExpectRefused(one({33}, 2, 0), "has rows of 33 elements, must be a multiple of 32 for Q4_0");
  ExpectRefused(one({4}, 0, 16), "has offset 16, must be a multiple of 32");
  ExpectRefused(one({33}, 0, 0), "has 132 bytes at offset 0, the file has 128 bytes of data");
  ExpectRefused(one({4}, 0, 160), "at offset 160");
  ExpectRefused(one({4}, 0, UINT64_MAX - 31), "at offset 18446744073709551584");
}

TEST(ModelFileTest, RefusesTensorsThatOverlapOrComeTwice) {
  RawFile overlap;
  overlap.Header(2, 0).Tensor("late", {8}, 0, 32).Tensor("early", {9}, 0, 0).Data(128);
  ExpectRefused(overlap.bytes(), "tensors \"early\" and \"late\" overlap at offset 32");
  RawFile twice;
  twice.Header(2, 0).Tensor("t", {8}, 0, 32).Tensor("t", {8}, 0, 0).Data(128);
  ExpectRefused(twice.bytes(), "tensor \"t\" comes twice");
  RawFile touching;
  touching.Header(2, 0).Tensor("b", {8}, 0, 32).Tensor("a", {8}, 0, 0).Data(64);
  EXPECT_TRUE(ModelFile::Parse(touching.bytes()).ok());
  RawFile name;
  name.Header(1, 0).Tensor(std::string(257, 'n'), {8}, 0, 0).Data(64);
  ExpectRefused(name.bytes(), "a tensor name at byte 32 has length 257, limit 256");
}

TEST(ModelFileTest, OpensFilesAndNamesWhatItCannotOpen) {
  const std::string path = testing::TempDir() + "/sample.gguf";
  ASSERT_TRUE(SampleWriter().WriteFile(path).ok());
  const auto file = ModelFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->GetUint("small"), 7);

  EXPECT_EQ(ModelFile::Open(path + ".absent").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ModelFile::Open(testing::TempDir()).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string empty = testing::TempDir() + "/empty.gguf";
  std::ofstream(empty).close();
  const absl::Status status = ModelFile::Open(empty).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr(empty));
}

TEST(ModelFileTest, TheHashIsOfEveryByte) {
  // XXH3-128 of nothing but a header, by the reference implementation (Python's xxhash.xxh3_128_hexdigest).
  const Bytes header = RawFile().Header(0, 0).bytes();
  const auto file = ModelFile::Parse(header);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->content_hash(), "fd59a5f5077d3594b2b224ba64cc5c3d");

  const Bytes bytes = SampleWriter().Serialize();
  Bytes changed = bytes;
  changed[bytes.size() - 64] ^= std::byte{1};  // in the last tensor
  const auto one = ModelFile::Parse(bytes);
  const auto other = ModelFile::Parse(changed);
  ASSERT_TRUE(one.ok() && other.ok());
  EXPECT_NE((*one)->content_hash(), (*other)->content_hash());
}

}  // namespace
}  // namespace baton
