#ifndef BATON_TESTS_SUPPORT_RANDOM_TENSOR_H_
#define BATON_TESTS_SUPPORT_RANDOM_TENSOR_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "engine/model_file/tensor_type.h"

namespace baton {

// `elements` values (whole blocks) of a type, packed as the file format packs them: random quants under
// scales and minima that vary from block to block, of about the standard deviation asked for and a mean near
// zero.
std::vector<std::byte> RandomTensor(TensorType type, uint64_t elements, float deviation,
                                    std::mt19937& random);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_RANDOM_TENSOR_H_
