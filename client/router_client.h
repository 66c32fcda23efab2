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
#include "client/connection_options.h"
#include "grpcpp/channel.h"

namespace baton {

// A connection to the router that the options name, as they say. INVALID_ARGUMENT or FAILED_PRECONDITION
// names the option that is wrong.
absl::StatusOr<std::shared_ptr<grpc::Channel>> DialRouter(const ConnectionOptions& options);

// One connection to a router, as the interactive commands use it: blocking calls, statuses turned into
// Abseil's. Calls may be made from several threads at once.
class RouterClient {
 public:
  // `options.timeout` bounds each call; infinite is allowed. Nothing is dialled before the first call.
  static absl::StatusOr<std::unique_ptr<RouterClient>> Create(const ConnectionOptions& options);

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

  void Prepare(grpc::ClientContext& context) const;

  RouterClient(const std::shared_ptr<grpc::Channel>& channel, const ConnectionOptions& options);

  const absl::Duration timeout_;
  const bool wait_for_ready_;
  const std::unique_ptr<v1::Inference::Stub> inference_;
  const std::unique_ptr<v1::Control::Stub> control_;
};

}  // namespace baton

#endif  // BATON_CLIENT_ROUTER_CLIENT_H_
