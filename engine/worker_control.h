#ifndef BATON_ENGINE_WORKER_CONTROL_H_
#define BATON_ENGINE_WORKER_CONTROL_H_

#include <functional>
#include <string>
#include <vector>

#include "common/control_service.h"
#include "engine/engine.h"

namespace baton {

// What a worker tells about itself. Its functions are called on several threads at once.
class WorkerControl final : public ControlProvider {
 public:
  struct Worker {
    v1::Role role = v1::ROLE_UNSPECIFIED;
    std::string instance_id;
    const Engine* engine = nullptr;  // outlives this object
    uint32_t max_running = 0;
    uint32_t reserve_tokens = 0;  // 0: for the whole answer
    std::vector<std::string> transports;
    std::function<v1::GetLoadResponse()> load;
    std::function<void(const std::string& request_id, std::function<void(absl::StatusOr<bool>)> done)> abort;
  };

  explicit WorkerControl(Worker worker) : worker_(std::move(worker)) {}

  v1::GetServerInfoResponse ServerInfo() const override;
  std::vector<v1::ModelInfo> Models() const override;
  v1::GetLoadResponse Load() const override { return worker_.load(); }
  absl::StatusOr<v1::ListWorkersResponse> Workers() const override;
  void Abort(const std::string& request_id, std::function<void(absl::StatusOr<bool>)> done) override {
    worker_.abort(request_id, std::move(done));
  }

 private:
  const Worker worker_;
};

}  // namespace baton

#endif  // BATON_ENGINE_WORKER_CONTROL_H_
