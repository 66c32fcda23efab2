#include "common/steady_clock.h"

#include <chrono>

namespace baton {
namespace {

struct Anchor {
  std::chrono::system_clock::time_point wall = std::chrono::system_clock::now();
  std::chrono::steady_clock::time_point steady = std::chrono::steady_clock::now();
};

}  // namespace

absl::Time SteadyClock::Now() const {
  static const Anchor anchor;
  return absl::FromChrono(anchor.wall) + absl::FromChrono(std::chrono::steady_clock::now() - anchor.steady);
}

}  // namespace baton
