#ifndef BATON_COMMON_HEALTH_SERVICE_H_
#define BATON_COMMON_HEALTH_SERVICE_H_

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "common/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"

namespace baton {

// grpc.health.v1. The empty name stands for the process, which is alive from the start; a full service name
// says whether that service can take work now. The library's own implementation is not used: it keeps Watch
// streams open, which holds up a shutdown.
//
// Outlives the server that it is registered with. Safe to call from any thread.
class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  HealthService() = default;
  ~HealthService() override;

  // Names a service, or changes it. Watchers are told. Has no effect on what is said once a drain began.
  void SetServing(std::string_view service, bool serving);

  // Every named service is NOT_SERVING from now on; their watchers are told and their streams closed. The
  // process itself is still alive.
  void StartDrain();
  // The same for the process.
  void Stop();

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context, const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class Watcher;
  using Status = grpc::health::v1::HealthCheckResponse::ServingStatus;

  Status StatusOf(const std::string& service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Closing(const std::string& service) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void UpdateWatchers() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, bool> serving_ ABSL_GUARDED_BY(mutex_);
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);  // Each deletes itself when its call is over.
};

}  // namespace baton

#endif  // BATON_COMMON_HEALTH_SERVICE_H_
