#include "common/request_id.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace baton {

std::string NewRequestId(RandomSource& random) {
  const uint64_t high = random.Next();
  const uint64_t low = random.Next();
  return absl::StrFormat("%016x%016x", high, low);
}

}  // namespace baton
