#ifndef BATON_COMMON_TRANSFER_ID_H_
#define BATON_COMMON_TRANSFER_ID_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/random_source.h"

namespace baton {

// Names one attempt's KV transfer, on every leg and in every log line. 128 random bits, minted by the router,
// never truncated and never reused. A value type; the default one is zero, names no transfer and is refused
// from the wire.
class TransferId {
 public:
  TransferId() = default;

  static TransferId Mint(RandomSource& random);

  // Exactly 16 bytes, the most significant first, not all zero.
  static absl::StatusOr<TransferId> FromBytes(std::string_view bytes);

  std::string ToBytes() const;
  // 32 lower-case digits.
  std::string ToHex() const;

  auto operator<=>(const TransferId&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const TransferId& id) {
    return H::combine(std::move(state), id.high_, id.low_);
  }

 private:
  friend struct std::hash<TransferId>;

  TransferId(uint64_t high, uint64_t low) : high_(high), low_(low) {}

  uint64_t high_ = 0;
  uint64_t low_ = 0;
};

}  // namespace baton

template <>
struct std::hash<baton::TransferId> {
  // The bits are uniform already.
  size_t operator()(const baton::TransferId& id) const noexcept { return id.high_ ^ id.low_; }
};

#endif  // BATON_COMMON_TRANSFER_ID_H_
