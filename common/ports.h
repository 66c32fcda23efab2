#ifndef BATON_COMMON_PORTS_H_
#define BATON_COMMON_PORTS_H_

#include <cstdint>

// Default TCP ports, all in one place. A second worker of a role on one machine takes the next number.
namespace baton {

inline constexpr uint16_t kRouterPort = 7600;
inline constexpr uint16_t kPrefillPort = 7610;
inline constexpr uint16_t kDecodePort = 7620;

inline constexpr uint16_t kRouterMetricsPort = 8600;
inline constexpr uint16_t kPrefillMetricsPort = 8610;
inline constexpr uint16_t kDecodeMetricsPort = 8620;

}  // namespace baton

#endif  // BATON_COMMON_PORTS_H_
