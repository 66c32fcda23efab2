#ifndef BATON_CLIENT_UP_PLAN_H_
#define BATON_CLIENT_UP_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

namespace baton {

// What `baton up` is asked to start.
struct UpRequest {
  uint32_t prefill = 1;  // Workers; 0: the decode workers prefill too.
  uint32_t decode = 1;
  std::string model;                      // Path.
  uint32_t threads = 0;                   // Of each worker; 0: one for each of its cores.
  std::string tls;                        // Folder of `baton certs`; empty: plaintext.
  std::vector<std::string> router_flags;  // Passed on as they are.
  std::vector<std::string> prefill_flags;
  std::vector<std::string> decode_flags;
};

// Free ports of this machine for one process.
struct UpPorts {
  uint16_t listen = 0;
  uint16_t metrics = 0;
};

struct PlannedProcess {
  std::string name;    // Unique, short: "router", "prefill0".
  std::string binary;  // Its file's name.
  std::vector<std::string> arguments;
  std::vector<int> cores;  // It may run on these alone; empty: anywhere.
};

// The processes in the order in which they start: prefill workers, decode workers, the router. `ports` has an
// entry for each of them, in that order; `cores` are those that this machine lets us use, and are not handed
// out when empty. Workers share the cores out evenly, prefill and decode in turn, and the router has one of
// its own once there are more cores than workers; with fewer cores than workers, several workers share one.
// Everything listens on loopback. A pure function.
std::vector<PlannedProcess> MakeUpPlan(const UpRequest& request, const std::vector<UpPorts>& ports,
                                       const std::vector<int>& cores);

}  // namespace baton

#endif  // BATON_CLIENT_UP_PLAN_H_
