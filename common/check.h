#ifndef BATON_COMMON_CHECK_H_
#define BATON_COMMON_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Ends the process when an invariant of the program itself is broken. Active in every build. Never used on
// input: what comes from a file, a peer or a client is answered with a status.
#define BATON_CHECK(condition)                                                               \
  do {                                                                                       \
    if (!(condition)) [[unlikely]] {                                                         \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)

#endif  // BATON_COMMON_CHECK_H_
