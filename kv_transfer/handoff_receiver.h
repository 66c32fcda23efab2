#ifndef BATON_KV_TRANSFER_HANDOFF_RECEIVER_H_
#define BATON_KV_TRANSFER_HANDOFF_RECEIVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/metrics.h"
#include "common/transfer_id.h"
#include "engine/kv/kv_pools.h"
#include "kv_transfer/kv_backend_registry.h"
#include "kv_transfer/landing_actions.h"
#include "kv_transfer/landing_table.h"

namespace grpc {
class Service;
}

namespace baton {

// All handoffs that a decode worker receives: the facade that its service uses. Thread-safe; no call blocks.
// Runs the LandingTable on a thread of its own, and connects it with the KvTransfer service and the backends.
class HandoffReceiver {
 public:
  struct Options {
    std::vector<KvBackendKind> transports;
    const KvPools* pools = nullptr;  // outlives the facade, like the next three
    Device* device = nullptr;
    const Clock* clock = nullptr;
    Metrics* metrics = nullptr;  // null: nothing is counted
    // One of the two answers each Add that was not dropped; on a thread of the facade; must not block.
    std::function<void(landing::Landed)> on_landed;
    std::function<void(landing::LandingFailed)> on_failed;
  };

  explicit HandoffReceiver(Options options);
  // The server of service() is shut down by then. Waits until nothing writes to the pools any more; nothing
  // is reported from then on.
  ~HandoffReceiver();

  // Before the landing is told to anybody.
  void Add(LandingSpec spec);
  void Drop(const TransferId& transfer_id);

  // To register with the server that landings name.
  grpc::Service* service();
  // For Landing.transports.
  const std::vector<std::string>& transports() const;

 private:
  class Core;
  const std::unique_ptr<Core> core_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_HANDOFF_RECEIVER_H_
