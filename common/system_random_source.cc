#include "common/system_random_source.h"

#include <sys/random.h>

#include <cerrno>

#include "common/check.h"

namespace baton {

uint64_t SystemRandomSource::Next() {
  uint64_t bits = 0;
  ssize_t read = 0;
  // Only the wait for the kernel's first entropy can be interrupted; up to 256 bytes then arrive whole.
  do {
    read = getrandom(&bits, sizeof(bits), 0);
  } while (read < 0 && errno == EINTR);
  BATON_CHECK(read == sizeof(bits));
  return bits;
}

}  // namespace baton
