#ifndef BATON_ENGINE_SAMPLING_PHILOX_H_
#define BATON_ENGINE_SAMPLING_PHILOX_H_

#include <array>
#include <cstdint>

namespace baton {

// Philox4x32 with ten rounds: 128 random bits as a pure function of a 64-bit key and a 128-bit counter.
// Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;
PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key);

// Uniform in [0, 1) with 53 random bits: what (seed, position) gives on every machine.
double UniformAt(uint64_t seed, uint64_t position);

}  // namespace baton

#endif  // BATON_ENGINE_SAMPLING_PHILOX_H_
