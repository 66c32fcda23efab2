#ifndef BATON_COMMON_INSTANCE_ID_H_
#define BATON_COMMON_INSTANCE_ID_H_

#include <compare>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/random_source.h"

namespace baton {

// Names one start of one process: a peer restarted at the same address is a new peer. A version 4 UUID as
// lower-case text. A value type; the default one is empty and names no process.
class InstanceId {
 public:
  InstanceId() = default;

  static InstanceId Mint(RandomSource& random);

  // The 36 characters of a UUID of any version; upper-case digits are refused, so that equal ids are equal
  // texts.
  static absl::StatusOr<InstanceId> FromText(std::string_view text);

  const std::string& text() const { return text_; }

  auto operator<=>(const InstanceId&) const = default;

  template <typename H>
  friend H AbslHashValue(H state, const InstanceId& id) {
    return H::combine(std::move(state), id.text_);
  }

 private:
  explicit InstanceId(std::string text) : text_(std::move(text)) {}

  std::string text_;
};

}  // namespace baton

#endif  // BATON_COMMON_INSTANCE_ID_H_
