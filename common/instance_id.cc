#include "common/instance_id.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace baton {
namespace {

constexpr size_t kLength = 36;

bool IsDashPlace(size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

bool IsLowerHex(char c) { return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f'); }

}  // namespace

InstanceId InstanceId::Mint(RandomSource& random) {
  const uint64_t high = (random.Next() & ~uint64_t{0xf000}) | 0x4000;                 // Version 4.
  const uint64_t low = (random.Next() & ~(uint64_t{3} << 62)) | (uint64_t{2} << 62);  // The RFC's variant.
  return InstanceId(absl::StrFormat("%08x-%04x-%04x-%04x-%012x", high >> 32, high >> 16 & 0xffff,
                                    high & 0xffff, low >> 48, low & ((uint64_t{1} << 48) - 1)));
}

absl::StatusOr<InstanceId> InstanceId::FromText(std::string_view text) {
  if (text.size() != kLength) {
    return absl::InvalidArgumentError(
        absl::StrCat("instance_id: ", text.size(), " characters, must be ", kLength));
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (IsDashPlace(i) ? text[i] != '-' : !IsLowerHex(text[i])) {
      return absl::InvalidArgumentError(
          absl::StrCat("instance_id: character ", i, " does not belong in a lower-case UUID"));
    }
  }
  return InstanceId(std::string(text));
}

}  // namespace baton
