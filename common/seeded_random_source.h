#ifndef BATON_COMMON_SEEDED_RANDOM_SOURCE_H_
#define BATON_COMMON_SEEDED_RANDOM_SOURCE_H_

#include <random>

#include "common/random_source.h"

namespace baton {

// The same bits for the same seed on every machine (MT19937-64, whose output the C++ standard fixes). One
// thread at a time.
class SeededRandomSource final : public RandomSource {
 public:
  explicit SeededRandomSource(uint64_t seed) : generator_(seed) {}

  uint64_t Next() override { return generator_(); }

 private:
  std::mt19937_64 generator_;
};

}  // namespace baton

#endif  // BATON_COMMON_SEEDED_RANDOM_SOURCE_H_
