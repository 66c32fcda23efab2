#include "engine/model_file/gguf_writer.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "common/check.h"
#include "common/str_cat.h"
#include "engine/model_file/gguf_format.h"

namespace baton {
namespace {

template <typename T>
void Append(std::string& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void AppendString(std::string& out, std::string_view value) {
  Append<uint64_t>(out, value.size());
  out.append(value);
}

void PadTo(std::string& out, uint32_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
}

uint64_t BytesOf(TensorType type, absl::Span<const uint64_t> dims) {
  const TensorTypeTraits traits = TraitsOf(type);
  uint64_t elements = 1;
  for (uint64_t dim : dims) elements *= dim;
  return elements / traits.elements * traits.bytes;
}

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  BATON_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0);
  if (alignment != kGgufDefaultAlignment) AddUint(kGgufAlignmentKey, alignment);
}

void GgufWriter::BeginValue(std::string_view key, uint32_t type) {
  ++key_count_;
  AppendString(metadata_, key);
  Append<uint32_t>(metadata_, type);
}

void GgufWriter::BeginArray(std::string_view key, uint32_t element_type, uint64_t count) {
  BeginValue(key, static_cast<uint32_t>(GgufType::kArray));
  Append<uint32_t>(metadata_, element_type);
  Append<uint64_t>(metadata_, count);
}

void GgufWriter::AddUint(std::string_view key, uint64_t value) {
  if (value <= UINT32_MAX) {
    BeginValue(key, static_cast<uint32_t>(GgufType::kUint32));
    Append<uint32_t>(metadata_, static_cast<uint32_t>(value));
  } else {
    BeginValue(key, static_cast<uint32_t>(GgufType::kUint64));
    Append<uint64_t>(metadata_, value);
  }
}

void GgufWriter::AddInt(std::string_view key, int32_t value) {
  BeginValue(key, static_cast<uint32_t>(GgufType::kInt32));
  Append<int32_t>(metadata_, value);
}

void GgufWriter::AddFloat(std::string_view key, float value) {
  BeginValue(key, static_cast<uint32_t>(GgufType::kFloat32));
  Append<float>(metadata_, value);
}

void GgufWriter::AddBool(std::string_view key, bool value) {
  BeginValue(key, static_cast<uint32_t>(GgufType::kBool));
  Append<uint8_t>(metadata_, value ? 1 : 0);
}

void GgufWriter::AddString(std::string_view key, std::string_view value) {
  BeginValue(key, static_cast<uint32_t>(GgufType::kString));
  AppendString(metadata_, value);
}

void GgufWriter::AddStrings(std::string_view key, absl::Span<const std::string> values) {
  BeginArray(key, static_cast<uint32_t>(GgufType::kString), values.size());
  for (const std::string& value : values) AppendString(metadata_, value);
}

void GgufWriter::AddInts(std::string_view key, absl::Span<const int32_t> values) {
  BeginArray(key, static_cast<uint32_t>(GgufType::kInt32), values.size());
  for (int32_t value : values) Append<int32_t>(metadata_, value);
}

void GgufWriter::AddFloats(std::string_view key, absl::Span<const float> values) {
  BeginArray(key, static_cast<uint32_t>(GgufType::kFloat32), values.size());
  for (float value : values) Append<float>(metadata_, value);
}

void GgufWriter::AddBools(std::string_view key, const std::vector<bool>& values) {
  BeginArray(key, static_cast<uint32_t>(GgufType::kBool), values.size());
  for (bool value : values) Append<uint8_t>(metadata_, value ? 1 : 0);
}

void GgufWriter::AddTensor(std::string_view name, TensorType type, absl::Span<const uint64_t> dims,
                           absl::Span<const std::byte> bytes) {
  BATON_CHECK(bytes.size() == BytesOf(type, dims));
  tensors_.push_back({std::string(name), type, {dims.begin(), dims.end()}, {bytes.begin(), bytes.end()}});
}

void GgufWriter::AddTensor(std::string_view name, absl::Span<const uint64_t> dims,
                           absl::Span<const float> values) {
  AddTensor(
      name, TensorType::kF32, dims,
      absl::MakeConstSpan(reinterpret_cast<const std::byte*>(values.data()), values.size() * sizeof(float)));
}

std::vector<std::byte> GgufWriter::Serialize() const {
  std::string out(kGgufMagic);
  Append<uint32_t>(out, kGgufMaxVersion);
  Append<uint64_t>(out, tensors_.size());
  Append<uint64_t>(out, key_count_);
  out += metadata_;
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    AppendString(out, tensor.name);
    Append<uint32_t>(out, static_cast<uint32_t>(tensor.dims.size()));
    for (uint64_t dim : tensor.dims) Append<uint64_t>(out, dim);
    Append<uint32_t>(out, static_cast<uint32_t>(tensor.type));
    Append<uint64_t>(out, offset);
    offset += (tensor.bytes.size() + alignment_ - 1) / alignment_ * alignment_;
  }
  for (const Tensor& tensor : tensors_) {
    PadTo(out, alignment_);
    out.append(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  }
  PadTo(out, alignment_);
  const auto* bytes = reinterpret_cast<const std::byte*>(out.data());
  return {bytes, bytes + out.size()};
}

absl::Status GgufWriter::WriteFile(const std::string& path) const {
  const std::vector<std::byte> bytes = Serialize();
  const std::string temporary = StrCat(path, ".partial");
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  if (file == nullptr) return absl::UnavailableError(StrCat(temporary, ": ", std::strerror(errno)));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  const bool closed = std::fclose(file) == 0;
  if (!written || !closed || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const absl::Status status = absl::UnavailableError(StrCat(path, ": ", std::strerror(errno)));
    std::remove(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

}  // namespace baton
