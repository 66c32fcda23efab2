#ifndef BATON_CLIENT_ROUTER_CLIENT_H_
#define BATON_CLIENT_ROUTER_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/inference.grpc.pb.h"

namespace baton {

// One connection to a router, as the interactive commands use it: blocking calls, statuses turned into
// Abseil's. Calls may be made from several threads at once.
class RouterClient {
 public:
  // `timeout` bounds each call; infinite is allowed. Nothing is dialled before the first call.
  RouterClient(const std::string& server, absl::Duration timeout);

  // Calls `on_delta` for each message as it arrives. Returns when the answer has ended.
  absl::Status GenerateStream(const v1::GenerateRequest& request,
                              const std::function<void(const v1::GenerateStreamResponse&)>& on_delta);

  absl::StatusOr<v1::GetServerInfoResponse> GetServerInfo();
  absl::StatusOr<v1::GetModelInfoResponse> GetModelInfo();
  absl::StatusOr<v1::GetLoadResponse> GetLoad();
  absl::StatusOr<v1::ListWorkersResponse> ListWorkers();

 private:
  template <typename Response, typename Call>
  absl::StatusOr<Response> Unary(const Call& call);

  void SetDeadline(grpc::ClientContext& context) const;

  const absl::Duration timeout_;
  const std::unique_ptr<v1::Inference::Stub> inference_;
  const std::unique_ptr<v1::Control::Stub> control_;
};

}  // namespace baton

#endif  // BATON_CLIENT_ROUTER_CLIENT_H_
