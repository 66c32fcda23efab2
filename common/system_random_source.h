#ifndef BATON_COMMON_SYSTEM_RANDOM_SOURCE_H_
#define BATON_COMMON_SYSTEM_RANDOM_SOURCE_H_

#include "common/random_source.h"

namespace baton {

// Unpredictable bits from the kernel. Safe to call from any thread.
class SystemRandomSource final : public RandomSource {
 public:
  uint64_t Next() override;
};

}  // namespace baton

#endif  // BATON_COMMON_SYSTEM_RANDOM_SOURCE_H_
