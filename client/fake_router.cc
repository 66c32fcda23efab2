#include "client/fake_router.h"

#include <algorithm>

#include "common/check.h"
#include "common/str_cat.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace baton {

FakeRouter::FakeRouter() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::Inference::Service*>(this));
  builder.RegisterService(static_cast<v1::Control::Service*>(this));
  server_ = builder.BuildAndStart();
  BATON_CHECK(server_ != nullptr);
  address_ = StrCat("127.0.0.1:", port);
}

FakeRouter::~FakeRouter() { server_->Shutdown(); }

void FakeRouter::FailNext(int count, const grpc::Status& status) {
  MutexLock lock(&mutex_);
  failures_left_ = count;
  failure_ = status;
}

std::vector<v1::GenerateRequest> FakeRouter::requests() const {
  MutexLock lock(&mutex_);
  return requests_;
}

int FakeRouter::most_open() const {
  MutexLock lock(&mutex_);
  return most_open_;
}

grpc::Status FakeRouter::Begin(const v1::GenerateRequest& request) {
  MutexLock lock(&mutex_);
  requests_.push_back(request);
  most_open_ = std::max(most_open_, ++open_);
  if (failures_left_ == 0) return grpc::Status::OK;
  --failures_left_;
  return failure_;
}

grpc::Status FakeRouter::GenerateStream(grpc::ServerContext*, const v1::GenerateRequest* request,
                                        grpc::ServerWriter<v1::GenerateStreamResponse>* writer) {
  grpc::Status status = Begin(*request);
  const uint32_t count = request->stopping().has_max_tokens() ? request->stopping().max_tokens() : 3;
  for (uint32_t i = 0; i < count; ++i) {
    v1::GenerateStreamResponse message;
    message.set_index(i);
    message.set_count(1);
    message.set_text(StrCat(" t", i));
    if (i == 0) message.mutable_prompt()->set_prompt_tokens(7);
    if (request->response().has_logprobs()) {
      v1::TokenLogprob& token = *message.add_logprobs()->mutable_token();
      token.set_text(message.text());
      token.set_logprob(-0.5);
    }
    if (i + 1 == count) {
      message.mutable_finish()->set_reason(v1::FINISH_REASON_LENGTH);
      message.mutable_usage()->set_prompt_tokens(7);
      message.mutable_usage()->set_completion_tokens(count);
      message.mutable_timings()->set_ttft_ms(1.5);
      if (count > 1) message.mutable_timings()->set_tpot_ms(0.25);
    }
    writer->Write(message);
    if (!status.ok()) break;
  }
  MutexLock lock(&mutex_);
  --open_;
  return status;
}

grpc::Status FakeRouter::GetServerInfo(grpc::ServerContext*, const v1::GetServerInfoRequest*,
                                       v1::GetServerInfoResponse* response) {
  response->set_role(v1::ROLE_ROUTER);
  response->set_version("9.9");
  response->set_state(v1::SERVER_STATE_SERVING);
  return grpc::Status::OK;
}

grpc::Status FakeRouter::GetModelInfo(grpc::ServerContext*, const v1::GetModelInfoRequest*,
                                      v1::GetModelInfoResponse* response) {
  response->mutable_model()->set_vocab_size(50);
  return grpc::Status::OK;
}

grpc::Status FakeRouter::GetLoad(grpc::ServerContext*, const v1::GetLoadRequest*,
                                 v1::GetLoadResponse* response) {
  response->set_requests_running(2);
  return grpc::Status::OK;
}

grpc::Status FakeRouter::ListWorkers(grpc::ServerContext*, const v1::ListWorkersRequest*,
                                     v1::ListWorkersResponse* response) {
  v1::Worker& worker = *response->add_workers();
  worker.set_role(v1::ROLE_PREFILL);
  worker.set_name("fake:1");
  worker.set_state(v1::WORKER_STATE_SERVING);
  worker.mutable_model()->set_name("model-of-the-fake");
  return grpc::Status::OK;
}

}  // namespace baton
