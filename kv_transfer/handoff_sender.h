#ifndef BATON_KV_TRANSFER_HANDOFF_SENDER_H_
#define BATON_KV_TRANSFER_HANDOFF_SENDER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/kv_transfer.pb.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "common/transfer_id.h"
#include "engine/kv/kv_pools.h"
#include "engine/kv/ranges.h"
#include "kv_transfer/handoff.h"
#include "kv_transfer/kv_backend_registry.h"
#include "kv_transfer/land_client.h"
#include "kv_transfer/pinned_kv.h"

namespace baton {

// All handoffs that a prefill worker sends: the facade that its service uses. Thread-safe; no call blocks.
// Runs each KvSender on a thread of its own, and connects it with the network and the backends.
class HandoffSender {
 public:
  struct Options {
    std::string instance_id;
    std::vector<KvBackendKind> transports;
    const KvPools* pools = nullptr;  // outlives the facade, like the next three
    Device* device = nullptr;
    const Clock* clock = nullptr;
    Metrics* metrics = nullptr;  // null: nothing is counted
    ChannelFactory channels;
    // Once per Start, on a thread of the facade; must not block.
    std::function<void(HandoffResult)> on_finished;
  };

  explicit HandoffSender(Options options);
  // Cancels what runs and waits until nothing reads the pools any more; no result is reported from then on.
  ~HandoffSender();

  // `source` is the prompt's sequence; its pins are dropped when nothing reads the blocks any more.
  void Start(HandoffSpec spec, PinnedKv source);
  void Computed(const TransferId& transfer_id, LayerRange model_layers, TokenRange tokens);
  void PromptDone(const TransferId& transfer_id, v1::LandCommit commit);
  // Ends with CANCELLED, unless it has ended already.
  void Cancel(const TransferId& transfer_id);

 private:
  class Core;
  const std::unique_ptr<Core> core_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_HANDOFF_SENDER_H_
