#ifndef BATON_ROUTER_WORKER_STUBS_H_
#define BATON_ROUTER_WORKER_STUBS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/decode.grpc.pb.h"
#include "baton/v1/prefill.grpc.pb.h"
#include "common/credentials.h"
#include "common/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "grpcpp/channel.h"

namespace baton {

// The connections to every worker: two for legs, taken in turn, and one for probes, so that a probe never
// waits behind tokens. Made at first use, kept until dropped. Thread-safe.
class WorkerStubs {
 public:
  // Null credentials: plaintext.
  explicit WorkerStubs(std::shared_ptr<const Credentials> credentials)
      : credentials_(std::move(credentials)) {}

  std::shared_ptr<v1::PrefillWorker::Stub> Prefill(const std::string& address);
  std::shared_ptr<v1::DecodeWorker::Stub> Decode(const std::string& address);
  std::shared_ptr<v1::Control::Stub> Control(const std::string& address, v1::Role role);
  std::shared_ptr<grpc::health::v1::Health::Stub> Health(const std::string& address, v1::Role role);
  // The worker left the list: its connections close when the last leg on them ends.
  void Drop(const std::string& address);

 private:
  struct Connections {
    std::vector<std::shared_ptr<grpc::Channel>> legs;
    std::shared_ptr<grpc::Channel> probes;
    uint32_t next = 0;
  };
  Connections& Get(const std::string& address, v1::Role role) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<grpc::Channel> LegChannel(const std::string& address, v1::Role role)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<const Credentials> credentials_;
  Mutex mutex_;
  std::map<std::string, Connections> connections_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton

#endif  // BATON_ROUTER_WORKER_STUBS_H_
