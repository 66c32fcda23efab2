#ifndef BATON_ROUTER_SERVER_TIMING_H_
#define BATON_ROUTER_SERVER_TIMING_H_

#include <string>

#include "baton/v1/types.pb.h"

namespace baton {

// The durations of `timings` as the value of a server-timing trailer: "ttft;dur=12.345, tpot;dur=3.21" (W3C
// Server Timing), in milliseconds. Absent ones are left out.
std::string FormatServerTiming(const v1::Timings& timings);

}  // namespace baton

#endif  // BATON_ROUTER_SERVER_TIMING_H_
