#ifndef BATON_TESTS_SUPPORT_LEG_CLIENT_H_
#define BATON_TESTS_SUPPORT_LEG_CLIENT_H_

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/decode.grpc.pb.h"
#include "baton/v1/prefill.grpc.pb.h"
#include "common/grpc_channel.h"
#include "common/grpc_status.h"

// A blocking client of workers, for tests that play the router.
namespace baton {

inline std::chrono::system_clock::time_point After(std::chrono::milliseconds time) {
  return std::chrono::system_clock::now() + time;
}

// One open leg. Ends it when destroyed.
template <typename Event>
class BlockingLeg {
 public:
  explicit BlockingLeg(std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    context_.set_deadline(After(deadline));
  }
  ~BlockingLeg() {
    Cancel();
    static_cast<void>(Finish());
  }

  grpc::ClientContext* context() { return &context_; }
  void set_reader(std::unique_ptr<grpc::ClientReader<Event>> reader) { reader_ = std::move(reader); }

  // The next event that is no Progress; absent at the end.
  std::optional<Event> Next() {
    Event event;
    while (reader_->Read(&event)) {
      if (!event.has_progress()) return event;
    }
    return std::nullopt;
  }
  std::optional<Event> NextProgress() {
    Event event;
    while (reader_->Read(&event)) {
      if (event.has_progress()) return event;
    }
    return std::nullopt;
  }
  void Cancel() { context_.TryCancel(); }
  // Skips what is left and returns how the leg ended.
  absl::Status Finish() {
    if (status_) return *status_;
    while (Next()) {
    }
    return *(status_ = FromGrpcStatus(reader_->Finish()));
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Event>> reader_;
  std::optional<absl::Status> status_;
};

using PrefillLeg = BlockingLeg<v1::PrefillEvent>;
using DecodeLeg = BlockingLeg<v1::DecodeEvent>;

// The stubs of one worker.
class WorkerClient {
 public:
  explicit WorkerClient(const std::string& address) {
    const std::shared_ptr<grpc::Channel> channel = CreateChannel(address);
    prefill_ = v1::PrefillWorker::NewStub(channel);
    decode_ = v1::DecodeWorker::NewStub(channel);
    control_ = v1::Control::NewStub(channel);
  }

  v1::Control::Stub& control() { return *control_; }

  std::unique_ptr<PrefillLeg> Prefill(const v1::PrefillRequest& request,
                                      std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    auto leg = std::make_unique<PrefillLeg>(deadline);
    leg->set_reader(prefill_->Prefill(leg->context(), request));
    return leg;
  }
  std::unique_ptr<DecodeLeg> Decode(const v1::DecodeRequest& request,
                                    std::chrono::milliseconds deadline = std::chrono::seconds(30)) {
    auto leg = std::make_unique<DecodeLeg>(deadline);
    leg->set_reader(decode_->Decode(leg->context(), request));
    return leg;
  }

  v1::GetServerInfoResponse Info() {
    grpc::ClientContext context;
    v1::GetServerInfoResponse response;
    control_->GetServerInfo(&context, {}, &response);
    return response;
  }
  v1::GetLoadResponse Load() {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(After(std::chrono::seconds(30)));
    v1::GetLoadResponse response;
    control_->GetLoad(&context, {}, &response);
    return response;
  }
  // Whether `done` holds for the load within five seconds.
  template <typename Done>
  bool AwaitLoad(Done done) {
    const auto end = After(std::chrono::seconds(5));
    do {
      if (done(Load())) return true;
    } while (std::chrono::system_clock::now() < end);
    return false;
  }
  // Whether every request has ended and every block is free within five seconds.
  bool AwaitIdle() {
    return AwaitLoad([](const v1::GetLoadResponse& load) {
      if (load.blocks().empty() || load.requests_running() + load.requests_waiting() > 0) return false;
      for (const v1::BlockLoad& blocks : load.blocks()) {
        if (blocks.reserved() + blocks.landing() + blocks.active() + blocks.draining() > 0) return false;
      }
      return true;
    });
  }
  // Whether there was such a request.
  bool Abort(const std::string& request_id) {
    grpc::ClientContext context;
    v1::AbortRequest request;
    request.set_request_id(request_id);
    v1::AbortResponse response;
    return control_->Abort(&context, request, &response).ok() && response.found();
  }

 private:
  std::unique_ptr<v1::PrefillWorker::Stub> prefill_;
  std::unique_ptr<v1::DecodeWorker::Stub> decode_;
  std::unique_ptr<v1::Control::Stub> control_;
};

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_LEG_CLIENT_H_
