#ifndef BATON_KV_TRANSFER_KV_BACKEND_REGISTRY_H_
#define BATON_KV_TRANSFER_KV_BACKEND_REGISTRY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kv_transfer/kv_backend.h"
#include "kv_transfer/land_data_writer.h"

namespace baton {

// How a worker makes one kind of backend, under the name that landings use for it.
struct KvBackendKind {
  std::string name;
  bool data_on_stream = false;  // its bytes come as LandData
  // What is passed in outlives what is made.
  std::function<std::unique_ptr<KvSendBackend>(Device*, LandDataWriter*)> make_sender;
  std::function<std::unique_ptr<KvReceiveBackend>(Device*)> make_receiver;
};

// In their order.
std::vector<std::string> NamesOf(const std::vector<KvBackendKind>& kinds);

// The backends that a binary was linked with: filled by main, read at start-up. Not thread-safe.
class KvBackendRegistry {
 public:
  void Register(KvBackendKind kind) { kinds_.push_back(std::move(kind)); }

  // The kinds of these names, in their order. INVALID_ARGUMENT, with the names there are, for an unknown or
  // repeated name or for none at all.
  absl::StatusOr<std::vector<KvBackendKind>> Select(const std::vector<std::string>& names) const;

 private:
  std::vector<KvBackendKind> kinds_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_KV_BACKEND_REGISTRY_H_
