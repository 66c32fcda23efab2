#ifndef BATON_COMMON_RANDOM_SOURCE_H_
#define BATON_COMMON_RANDOM_SOURCE_H_

#include <cstdint>

namespace baton {

// Where ids and seeds come from. Passed in, so that a simulation can replay a run from one number.
class RandomSource {
 public:
  virtual ~RandomSource() = default;

  // 64 uniform bits. Only implementations that say so may be shared by threads.
  virtual uint64_t Next() = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_RANDOM_SOURCE_H_
