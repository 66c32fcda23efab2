#include "common/transfer_id.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace baton {
namespace {

constexpr size_t kBytes = 16;

uint64_t LoadBigEndian(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes.substr(0, 8)) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

void AppendBigEndian(uint64_t value, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(value >> shift & 0xff));
}

}  // namespace

TransferId TransferId::Mint(RandomSource& random) {
  TransferId id;
  while (id == TransferId()) {
    id.high_ = random.Next();
    id.low_ = random.Next();
  }
  return id;
}

absl::StatusOr<TransferId> TransferId::FromBytes(std::string_view bytes) {
  if (bytes.size() != kBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("transfer_id: ", bytes.size(), " bytes, must be ", kBytes));
  }
  const TransferId id(LoadBigEndian(bytes), LoadBigEndian(bytes.substr(8)));
  if (id == TransferId()) return absl::InvalidArgumentError("transfer_id: all bytes are zero");
  return id;
}

std::string TransferId::ToBytes() const {
  std::string bytes;
  bytes.reserve(kBytes);
  AppendBigEndian(high_, &bytes);
  AppendBigEndian(low_, &bytes);
  return bytes;
}

std::string TransferId::ToHex() const { return absl::StrFormat("%016x%016x", high_, low_); }

}  // namespace baton
