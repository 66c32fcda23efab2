#ifndef BATON_CLIENT_SPLIT_MIX_H_
#define BATON_CLIENT_SPLIT_MIX_H_

#include <cstdint>

namespace baton {

// The SplitMix64 generator: advances `state` and returns 64 well mixed bits. The standard library's
// distributions differ between implementations; a load that can be repeated needs one that does not.
inline uint64_t SplitMix(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

}  // namespace baton

#endif  // BATON_CLIENT_SPLIT_MIX_H_
