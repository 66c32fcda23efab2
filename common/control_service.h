#ifndef BATON_COMMON_CONTROL_SERVICE_H_
#define BATON_COMMON_CONTROL_SERVICE_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "baton/v1/control.grpc.pb.h"
#include "common/drain_state.h"

namespace baton {

// What a process tells about itself. Called on threads of gRPC, several at once; must not block.
class ControlProvider {
 public:
  virtual ~ControlProvider() = default;

  // Without version, protocol range and state, which the service fills in.
  virtual v1::GetServerInfoResponse ServerInfo() const = 0;
  // Every model that is served, the default one first.
  virtual std::vector<v1::ModelInfo> Models() const = 0;
  virtual v1::GetLoadResponse Load() const = 0;
  virtual absl::StatusOr<v1::ListWorkersResponse> Workers() const = 0;
  // Ends the request with ABORTED. `done` is called exactly once, on any thread, also in this call: whether
  // there was such a request.
  virtual void Abort(const std::string& request_id, std::function<void(absl::StatusOr<bool> found)> done) = 0;
};

// baton.v1.Control, for every role. Unary methods take bytes and parse them themselves: see parse_message.h.
// Outlives the server that it is registered with.
class ControlService final : public v1::Control::CallbackService {
 public:
  // Both outlive the service.
  ControlService(ControlProvider* provider, DrainState* drain);

  // Begins the drain that SIGTERM begins, and reports until no work is left.
  grpc::ServerWriteReactor<v1::DrainResponse>* Drain(grpc::CallbackServerContext* context,
                                                     const v1::DrainRequest* request) override;

 private:
  template <typename Request, typename Response>
  using Method = grpc::ServerUnaryReactor* (ControlService::*)(grpc::CallbackServerContext*, const Request&,
                                                               Response*);
  template <typename Request, typename Response>
  void Serve(int index, Method<Request, Response> method);

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context, const v1::GetServerInfoRequest&,
                                    v1::GetServerInfoResponse* response);
  grpc::ServerUnaryReactor* GetModels(grpc::CallbackServerContext* context, const v1::ListModelsRequest&,
                                      v1::ListModelsResponse* response);
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const v1::GetModelInfoRequest& request,
                                     v1::GetModelInfoResponse* response);
  grpc::ServerUnaryReactor* GetOwnLoad(grpc::CallbackServerContext* context, const v1::GetLoadRequest&,
                                       v1::GetLoadResponse* response);
  grpc::ServerUnaryReactor* GetWorkers(grpc::CallbackServerContext* context, const v1::ListWorkersRequest&,
                                       v1::ListWorkersResponse* response);
  grpc::ServerUnaryReactor* AbortRequest(grpc::CallbackServerContext* context,
                                         const v1::AbortRequest& request, v1::AbortResponse* response);

  ControlProvider* const provider_;
  DrainState* const drain_;
};

}  // namespace baton

#endif  // BATON_COMMON_CONTROL_SERVICE_H_
