// The least that anything between a client and a gRPC server costs: one more hop.
//
//   proxy_hop LISTEN_PORT SERVER_PORT CONNECTIONS
//
// Forwards every call to a server on loopback message by message, as bytes, without looking into them; the
// router's overhead is compared with this one's. Ends with its standard input.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/grpc_channel.h"
#include "common/mutex.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace baton {
namespace {

using grpc::ByteBuffer;

// One call in both directions: what is read on one side is written on the other before the next read there.
// Owns itself: gRPC says of each half when it is done, and the second one deletes both.
class ForwardedCall {
 public:
  ForwardedCall(grpc::GenericCallbackServerContext* context, grpc::GenericStub* server) {
    upstream_.context.set_deadline(context->deadline());
    upstream_.call = downstream_.call = this;
    server->PrepareBidiStreamingCall(&upstream_.context, context->method(), grpc::StubOptions(), &upstream_);
    upstream_.AddHold();  // Its writes are started by the other half.
    upstream_.StartRead(&response_);
    upstream_.StartCall();
    downstream_.StartRead(&request_);
  }

  grpc::ServerGenericBidiReactor* reactor() { return &downstream_; }

 private:
  // Towards the client.
  struct Downstream final : grpc::ServerGenericBidiReactor {
    void OnReadDone(bool ok) override { call->OnRequest(ok); }
    void OnWriteDone(bool ok) override {
      if (ok) {
        call->upstream_.StartRead(&call->response_);
      } else {
        call->EndUpstream();
      }
    }
    void OnCancel() override { call->upstream_.context.TryCancel(); }
    void OnDone() override { call->HalfDone(); }
    ForwardedCall* call = nullptr;
  };
  // Towards the server.
  struct Upstream final : grpc::ClientBidiReactor<ByteBuffer, ByteBuffer> {
    void OnWriteDone(bool ok) override {
      if (ok) call->downstream_.StartRead(&call->request_);
    }
    void OnReadDone(bool ok) override {
      if (ok) {
        call->downstream_.StartWrite(&call->response_);
      } else {
        call->EndUpstream();
      }
    }
    void OnDone(const grpc::Status& status) override {
      call->downstream_.Finish(status);
      call->HalfDone();
    }
    ForwardedCall* call = nullptr;
    grpc::ClientContext context;
  };

  void OnRequest(bool ok) {
    MutexLock lock(&mutex_);
    if (upstream_ended_) return;
    if (ok) {
      upstream_.StartWrite(&request_);
    } else {
      upstream_.StartWritesDone();
    }
  }

  // Nothing more is started on that half.
  void EndUpstream() {
    {
      MutexLock lock(&mutex_);
      if (upstream_ended_) return;
      upstream_ended_ = true;
    }
    upstream_.RemoveHold();
  }

  void HalfDone() {
    {
      MutexLock lock(&mutex_);
      if (--halves_ > 0) return;
    }
    delete this;
  }

  Downstream downstream_;
  Upstream upstream_;
  ByteBuffer request_;
  ByteBuffer response_;
  Mutex mutex_;
  bool upstream_ended_ ABSL_GUARDED_BY(mutex_) = false;
  int halves_ ABSL_GUARDED_BY(mutex_) = 2;
};

class Proxy final : public grpc::CallbackGenericService {
 public:
  Proxy(const std::string& server, int connections) {
    for (const auto& channel : CreateChannels(server, connections)) {
      stubs_.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
  }

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    uint32_t turn = 0;
    {
      MutexLock lock(&mutex_);
      turn = calls_++;
    }
    return (new ForwardedCall(context, stubs_[turn % stubs_.size()].get()))->reactor();
  }

  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  Mutex mutex_;
  uint32_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
};

int Run(const std::string& listen_port, const std::string& server_port, int connections) {
  Proxy proxy("127.0.0.1:" + server_port, connections);
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + listen_port, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&proxy);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::fprintf(stderr, "proxy_hop: port %s is taken\n", listen_port.c_str());
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: proxy_hop LISTEN_PORT SERVER_PORT CONNECTIONS\n");
    return 2;
  }
  return baton::Run(argv[1], argv[2], std::max(1, std::atoi(argv[3])));
}
