#ifndef BATON_CLIENT_FAKE_ROUTER_H_
#define BATON_CLIENT_FAKE_ROUTER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/inference.grpc.pb.h"
#include "common/mutex.h"
#include "grpcpp/server.h"

namespace baton {

// A router without workers, on a free port of loopback: answers every GenerateStream with the tokens " t0", "
// t1", ... as many as max_tokens says (3 when it is absent), one message each, with timings in the last. Its
// methods may be called from any thread while it serves.
class FakeRouter final : public v1::Inference::Service, public v1::Control::Service {
 public:
  FakeRouter();
  ~FakeRouter() override;

  const std::string& address() const { return address_; }

  // The next `count` streams end with this status after their first token.
  void FailNext(int count, const grpc::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  // What was asked, in order of arrival.
  std::vector<v1::GenerateRequest> requests() const ABSL_LOCKS_EXCLUDED(mutex_);

  // The most streams that were open at once.
  int most_open() const ABSL_LOCKS_EXCLUDED(mutex_);

  grpc::Status GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                              grpc::ServerWriter<v1::GenerateStreamResponse>* writer) override;
  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::GetServerInfoResponse* response) override;
  grpc::Status GetModelInfo(grpc::ServerContext* context, const v1::GetModelInfoRequest* request,
                            v1::GetModelInfoResponse* response) override;
  grpc::Status GetLoad(grpc::ServerContext* context, const v1::GetLoadRequest* request,
                       v1::GetLoadResponse* response) override;
  grpc::Status ListWorkers(grpc::ServerContext* context, const v1::ListWorkersRequest* request,
                           v1::ListWorkersResponse* response) override;

 private:
  grpc::Status Begin(const v1::GenerateRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);

  std::string address_;
  std::unique_ptr<grpc::Server> server_;

  mutable Mutex mutex_;
  std::vector<v1::GenerateRequest> requests_ ABSL_GUARDED_BY(mutex_);
  int failures_left_ ABSL_GUARDED_BY(mutex_) = 0;
  grpc::Status failure_ ABSL_GUARDED_BY(mutex_);
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_open_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace baton

#endif  // BATON_CLIENT_FAKE_ROUTER_H_
