#include "common/health_service.h"

#include "common/check.h"
#include "common/grpc_status.h"

namespace baton {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

constexpr size_t kMaxServiceNameBytes = 1024;

absl::Status NameTooLong(size_t bytes) {
  return absl::InvalidArgumentError("service: " + std::to_string(bytes) + " bytes, at most " +
                                    std::to_string(kMaxServiceNameBytes));
}

}  // namespace

// One Watch stream. Sends the latest status, skipping those that came and went while a write was under way.
// All members are guarded by the service's mutex.
class HealthService::Watcher final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  Watcher(HealthService* service, std::string name) : service_(service), name_(std::move(name)) {}

  const std::string& name() const { return name_; }

  // With the service's mutex held; the analysis does not see that it is the caller's.
  void UpdateLocked() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (finished_ || writing_) return;
    const Status status = service_->StatusOf(name_);
    if (cancelled_) {
      FinishLocked(absl::CancelledError("the watcher is gone"));
    } else if (!sent_ || response_.status() != status) {
      response_.set_status(status);
      sent_ = true;
      writing_ = true;
      StartWrite(&response_);
    } else if (service_->Closing(name_)) {
      FinishLocked(absl::UnavailableError("shutting down"));
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&service_->mutex_);
    writing_ = false;
    if (!ok) cancelled_ = true;
    UpdateLocked();
  }

  void OnCancel() override {
    MutexLock lock(&service_->mutex_);
    cancelled_ = true;
    UpdateLocked();
  }

  void OnDone() override {
    {
      MutexLock lock(&service_->mutex_);
      service_->watchers_.erase(this);
    }
    delete this;
  }

 private:
  void FinishLocked(const absl::Status& status) {
    finished_ = true;
    Finish(ToGrpcStatus(status));
  }

  HealthService* const service_;
  const std::string name_;
  HealthCheckResponse response_;
  bool sent_ = false;
  bool writing_ = false;
  bool cancelled_ = false;
  bool finished_ = false;
};

HealthService::~HealthService() {
  MutexLock lock(&mutex_);
  BATON_CHECK(watchers_.empty());
}

void HealthService::SetServing(std::string_view service, bool serving) {
  MutexLock lock(&mutex_);
  serving_[std::string(service)] = serving;
  UpdateWatchers();
}

void HealthService::StartDrain() {
  MutexLock lock(&mutex_);
  draining_ = true;
  UpdateWatchers();
}

void HealthService::Stop() {
  MutexLock lock(&mutex_);
  draining_ = true;
  stopped_ = true;
  UpdateWatchers();
}

HealthService::Status HealthService::StatusOf(const std::string& service) const {
  if (service.empty()) return stopped_ ? HealthCheckResponse::NOT_SERVING : HealthCheckResponse::SERVING;
  const auto found = serving_.find(service);
  if (found == serving_.end()) return HealthCheckResponse::SERVICE_UNKNOWN;
  return found->second && !draining_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

bool HealthService::Closing(const std::string& service) const {
  return service.empty() ? stopped_ : draining_;
}

void HealthService::UpdateWatchers() {
  for (Watcher* watcher : watchers_) watcher->UpdateLocked();
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  absl::Status result;
  if (request->service().size() > kMaxServiceNameBytes) {
    result = NameTooLong(request->service().size());
  } else {
    MutexLock lock(&mutex_);
    const Status status = StatusOf(request->service());
    if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
      result = absl::NotFoundError("service: \"" + request->service() + "\" is not served here");
    } else {
      response->set_status(status);
    }
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(result));
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(grpc::CallbackServerContext*,
                                                                    const HealthCheckRequest* request) {
  if (request->service().size() > kMaxServiceNameBytes) {
    // Refused before it is known to anybody.
    class Refusal final : public grpc::ServerWriteReactor<HealthCheckResponse> {
     public:
      explicit Refusal(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
      void OnDone() override { delete this; }
    };
    return new Refusal(NameTooLong(request->service().size()));
  }
  auto* watcher = new Watcher(this, request->service());
  MutexLock lock(&mutex_);
  watchers_.insert(watcher);
  watcher->UpdateLocked();
  return watcher;
}

}  // namespace baton
