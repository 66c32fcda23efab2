#include "engine/model_file/model_file.h"

#include <xxhash.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "common/check.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/model_file/gguf_cursor.h"
#include "engine/model_file/gguf_format.h"
#include "engine/model_file/gguf_metadata.h"
#include "engine/model_file/mapped_file.h"

namespace baton {
namespace {

constexpr uint64_t kMaxTensors = 65536;
constexpr uint64_t kMaxTensorNameBytes = 256;
constexpr uint64_t kMinAlignment = 8;
constexpr uint64_t kMaxAlignment = 1 << 20;

class GgufFile : public ModelFile {
 public:
  explicit GgufFile(absl::Span<const std::byte> bytes) : bytes_(bytes) {}
  explicit GgufFile(MappedFile mapping) : mapping_(std::move(mapping)), bytes_(mapping_.bytes()) {}

  absl::Status ReadHeader();

  std::optional<uint64_t> GetUint(std::string_view key) const override { return metadata_.GetUint(key); }
  std::optional<double> GetFloat(std::string_view key) const override { return metadata_.GetFloat(key); }
  std::optional<bool> GetBool(std::string_view key) const override { return metadata_.GetBool(key); }
  std::optional<std::string_view> GetString(std::string_view key) const override {
    return metadata_.GetString(key);
  }
  std::optional<std::vector<std::string_view>> GetStrings(std::string_view key) const override {
    return metadata_.GetStrings(key);
  }
  std::optional<std::vector<int64_t>> GetInts(std::string_view key) const override {
    return metadata_.GetInts(key);
  }
  std::optional<std::vector<float>> GetFloats(std::string_view key) const override {
    return metadata_.GetFloats(key);
  }
  std::optional<std::vector<bool>> GetBools(std::string_view key) const override {
    return metadata_.GetBools(key);
  }

  absl::Span<const TensorView> tensors() const override { return tensors_; }
  const TensorView* FindTensor(std::string_view name) const override {
    const auto found = tensor_index_.find(name);
    return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
  }
  const std::string& content_hash() const override;
  uint64_t size_bytes() const override { return bytes_.size(); }

 private:
  // What a tensor's header says, before the place of its data is known.
  struct Extent {
    uint64_t offset = 0;  // from the start of the data section
    uint64_t bytes = 0;
  };

  absl::StatusOr<uint64_t> Alignment() const;
  absl::StatusOr<Extent> ReadTensorHeader(GgufCursor& cursor, TensorView& tensor) const;
  absl::Status PlaceTensors(uint64_t data_start, uint64_t alignment, absl::Span<const Extent> extents);
  absl::Status RefuseOverlaps(absl::Span<const Extent> extents) const;

  MappedFile mapping_;
  const absl::Span<const std::byte> bytes_;
  GgufMetadata metadata_;
  std::vector<TensorView> tensors_;
  absl::flat_hash_map<std::string_view, size_t> tensor_index_;
  mutable std::once_flag hash_once_;
  mutable std::string hash_;
};

absl::Status GgufFile::ReadHeader() {
  GgufCursor cursor(bytes_);
  if (bytes_.size() < kGgufMagic.size() ||
      std::string_view(reinterpret_cast<const char*>(bytes_.data()), kGgufMagic.size()) != kGgufMagic) {
    return absl::InvalidArgumentError("not a GGUF file: it does not begin with \"GGUF\"");
  }
  RETURN_IF_ERROR(cursor.Skip("the magic", kGgufMagic.size()));
  ASSIGN_OR_RETURN(const uint32_t version, cursor.Read<uint32_t>("the version"));
  if (version < kGgufMinVersion || version > kGgufMaxVersion) {
    return absl::InvalidArgumentError(
        StrCat("GGUF version is ", version, ", known are ", kGgufMinVersion, " to ", kGgufMaxVersion));
  }
  ASSIGN_OR_RETURN(const uint64_t tensor_count, cursor.Read<uint64_t>("the tensor count"));
  ASSIGN_OR_RETURN(const uint64_t key_count, cursor.Read<uint64_t>("the key count"));
  if (tensor_count > kMaxTensors) {
    return absl::InvalidArgumentError(StrCat("tensor count is ", tensor_count, ", limit ", kMaxTensors));
  }
  RETURN_IF_ERROR(metadata_.Parse(cursor, key_count));
  ASSIGN_OR_RETURN(const uint64_t alignment, Alignment());

  std::vector<Extent> extents;
  for (uint64_t i = 0; i < tensor_count; ++i) {
    TensorView tensor;
    ASSIGN_OR_RETURN(const Extent extent, ReadTensorHeader(cursor, tensor));
    tensors_.push_back(std::move(tensor));
    extents.push_back(extent);
  }
  if (tensor_count == 0) return absl::OkStatus();
  const uint64_t data_start = (cursor.offset() + alignment - 1) / alignment * alignment;
  return PlaceTensors(data_start, alignment, extents);
}

absl::StatusOr<uint64_t> GgufFile::Alignment() const {
  const std::optional<uint64_t> alignment = metadata_.GetUint(kGgufAlignmentKey);
  if (!alignment.has_value()) return kGgufDefaultAlignment;
  if (*alignment < kMinAlignment || *alignment > kMaxAlignment || (*alignment & (*alignment - 1)) != 0) {
    return absl::InvalidArgumentError(StrCat(kGgufAlignmentKey, " is ", *alignment,
                                             ", must be a power of two from ", kMinAlignment, " to ",
                                             kMaxAlignment));
  }
  return *alignment;
}

absl::StatusOr<GgufFile::Extent> GgufFile::ReadTensorHeader(GgufCursor& cursor, TensorView& tensor) const {
  ASSIGN_OR_RETURN(const std::string_view name, cursor.ReadString("a tensor name", kMaxTensorNameBytes));
  tensor.name = name;
  const std::string what = StrCat("tensor ", Quoted(name));
  ASSIGN_OR_RETURN(const uint32_t dim_count, cursor.Read<uint32_t>(what));
  if (dim_count < 1 || dim_count > kGgufMaxDims) {
    return absl::InvalidArgumentError(
        StrCat(what, " has ", dim_count, " dimensions, must be 1 to ", kGgufMaxDims));
  }
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dim_count; ++i) {
    ASSIGN_OR_RETURN(const uint64_t dim, cursor.Read<uint64_t>(what));
    if (dim == 0 || __builtin_mul_overflow(elements, dim, &elements)) {
      return absl::InvalidArgumentError(
          StrCat(what, " has ", dim, " as dimension ", i, ": its element count is 0 or passes 64 bits"));
    }
    tensor.dims.push_back(dim);
  }
  ASSIGN_OR_RETURN(const uint32_t type_number, cursor.Read<uint32_t>(what));
  const std::optional<TensorType> type = TensorTypeFromNumber(type_number);
  if (!type.has_value()) {
    return absl::InvalidArgumentError(StrCat(what, " has type ", type_number, " (",
                                             TensorTypeName(type_number), "), which is not supported"));
  }
  tensor.type = *type;
  const TensorTypeTraits traits = TraitsOf(*type);
  if (tensor.dims[0] % traits.elements != 0) {
    return absl::InvalidArgumentError(StrCat(what, " has rows of ", tensor.dims[0],
                                             " elements, must be a multiple of ", traits.elements, " for ",
                                             traits.name));
  }
  Extent extent;
  if (__builtin_mul_overflow(elements / traits.elements, uint64_t{traits.bytes}, &extent.bytes)) {
    return absl::InvalidArgumentError(StrCat(what, " has ", elements, " elements: its size passes 64 bits"));
  }
  ASSIGN_OR_RETURN(extent.offset, cursor.Read<uint64_t>(what));
  return extent;
}

absl::Status GgufFile::PlaceTensors(uint64_t data_start, uint64_t alignment,
                                    absl::Span<const Extent> extents) {
  const uint64_t data_bytes = data_start < bytes_.size() ? bytes_.size() - data_start : 0;
  for (size_t i = 0; i < extents.size(); ++i) {
    TensorView& tensor = tensors_[i];
    const auto [offset, size] = extents[i];
    if (offset % alignment != 0) {
      return absl::InvalidArgumentError(StrCat("tensor ", Quoted(tensor.name), " has offset ", offset,
                                               ", must be a multiple of ", alignment));
    }
    if (offset > data_bytes || size > data_bytes - offset) {
      return absl::InvalidArgumentError(StrCat("tensor ", Quoted(tensor.name), " has ", size,
                                               " bytes at offset ", offset, ", the file has ", data_bytes,
                                               " bytes of data"));
    }
    tensor.data = bytes_.subspan(data_start + offset, size);
    if (!tensor_index_.emplace(tensor.name, i).second) {
      return absl::InvalidArgumentError(StrCat("tensor ", Quoted(tensor.name), " comes twice"));
    }
  }
  return RefuseOverlaps(extents);
}

absl::Status GgufFile::RefuseOverlaps(absl::Span<const Extent> extents) const {
  std::vector<size_t> order(extents.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return extents[a].offset < extents[b].offset; });
  for (size_t i = 1; i < order.size(); ++i) {
    const Extent& before = extents[order[i - 1]];
    if (before.offset + before.bytes > extents[order[i]].offset) {
      return absl::InvalidArgumentError(StrCat("tensors ", Quoted(tensors_[order[i - 1]].name), " and ",
                                               Quoted(tensors_[order[i]].name), " overlap at offset ",
                                               extents[order[i]].offset));
    }
  }
  return absl::OkStatus();
}

const std::string& GgufFile::content_hash() const {
  std::call_once(hash_once_, [this] {
    const XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
    hash_ = absl::StrFormat("%016x%016x", hash.high64, hash.low64);
  });
  return hash_;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Open(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  auto file = std::make_unique<GgufFile>(std::move(mapping));
  if (absl::Status status = file->ReadHeader(); !status.ok()) {
    return absl::Status(status.code(), StrCat(path, ": ", status.message()));
  }
  return file;
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelFile::Parse(absl::Span<const std::byte> bytes) {
  BATON_CHECK(reinterpret_cast<uintptr_t>(bytes.data()) % kMinAlignment == 0);
  auto file = std::make_unique<GgufFile>(bytes);
  RETURN_IF_ERROR(file->ReadHeader());
  return file;
}

}  // namespace baton
