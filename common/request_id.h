#ifndef BATON_COMMON_REQUEST_ID_H_
#define BATON_COMMON_REQUEST_ID_H_

#include <string>

#include "common/random_source.h"

namespace baton {

// A request id for a client that gave none: 32 lower-case hexadecimal digits, 128 random bits.
std::string NewRequestId(RandomSource& random);

}  // namespace baton

#endif  // BATON_COMMON_REQUEST_ID_H_
