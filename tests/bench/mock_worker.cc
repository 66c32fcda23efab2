// Workers that compute nothing: what is left of a request's latency is the router's, gRPC's and the
// network's.
//
//   mock_worker MODEL PREFILL_PORT DECODE_PORT DIRECT_PORT PREFILL_MS STEP_MS
//
// Plays a prefill and a decode worker on two ports of loopback: the first token comes PREFILL_MS after the
// prompt and each further one STEP_MS later, in the order of messages of a real pair and each token in a
// message of its own, for any number of requests at once. With 0 and 0 all of an answer comes at once. A
// third port serves the answers themselves, as a router would send them: what a client sees with nothing
// between. Ends with its standard input.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/decode.grpc.pb.h"
#include "baton/v1/inference.grpc.pb.h"
#include "baton/v1/prefill.grpc.pb.h"
#include "common/mutex.h"
#include "common/protocol_version.h"
#include "common/serial_executor.h"
#include "common/server_stream.h"
#include "common/steady_clock.h"
#include "engine/model_file/model_file.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace baton {
namespace {

constexpr uint32_t kToken = 504;  // any that has a text
constexpr uint32_t kVocabSize = 49152;
constexpr uint32_t kContextTokens = 8192;
constexpr size_t kMaxQueued = 8192;  // messages of one answer

// When the tokens of an answer come.
class Pace {
 public:
  Pace(absl::Duration prefill, absl::Duration step)
      : prefill_(prefill), step_(step), executor_("pace", &clock_) {}
  ~Pace() { executor_.Stop(); }

  // Does `send` when token `index` of an answer that begins at `begin` is there.
  void At(absl::Time begin, uint32_t index, Executor::Task send) {
    const absl::Duration wait = prefill_ + index * step_;
    if (wait == absl::ZeroDuration()) {
      std::move(send)();
    } else {
      executor_.PostAt(begin + wait, std::move(send));
    }
  }
  absl::Time Now() const { return clock_.Now(); }

 private:
  const absl::Duration prefill_;
  const absl::Duration step_;
  const SteadyClock clock_;
  SerialExecutor executor_;
};

// The decode legs that wait for their prefill leg. Thread-safe.
class WaitingLegs {
 public:
  using Stream = std::shared_ptr<ServerStream<v1::DecodeEvent>>;
  struct Leg {
    Stream stream;
    uint32_t tokens = 0;
  };

  void Put(const std::string& transfer_id, Leg leg) {
    MutexLock lock(&mutex_);
    legs_[transfer_id] = std::move(leg);
  }
  // Without a stream when there is no such leg.
  Leg Take(const std::string& transfer_id) {
    MutexLock lock(&mutex_);
    const auto found = legs_.find(transfer_id);
    if (found == legs_.end()) return {};
    Leg leg = std::move(found->second);
    legs_.erase(found);
    return leg;
  }

 private:
  Mutex mutex_;
  absl::flat_hash_map<std::string, Leg> legs_ ABSL_GUARDED_BY(mutex_);
};

// What the router asks of a worker: an idle one with room for everything.
class MockControl final : public v1::Control::CallbackService {
 public:
  MockControl(v1::Role role, std::string instance_id, std::string fingerprint)
      : role_(role), instance_id_(std::move(instance_id)), fingerprint_(std::move(fingerprint)) {}

  grpc::ServerUnaryReactor* GetServerInfo(grpc::CallbackServerContext* context,
                                          const v1::GetServerInfoRequest*,
                                          v1::GetServerInfoResponse* response) override {
    response->set_role(role_);
    response->set_version("mock");
    response->set_instance_id(instance_id_);
    response->set_protocol_min(kOldestProtocolVersion);
    response->set_protocol_max(kProtocolVersion);
    response->set_state(v1::SERVER_STATE_SERVING);
    FillModel(response->mutable_model());
    response->mutable_limits()->set_block_tokens(16);
    response->mutable_limits()->set_kv_capacity_tokens(1e9);
    response->mutable_limits()->set_max_running(1 << 20);
    response->mutable_limits()->add_transports("grpc");
    return Done(context);
  }
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context, const v1::GetModelInfoRequest*,
                                         v1::GetModelInfoResponse* response) override {
    FillModel(response->mutable_model());
    return Done(context);
  }
  grpc::ServerUnaryReactor* GetLoad(grpc::CallbackServerContext* context, const v1::GetLoadRequest*,
                                    v1::GetLoadResponse* response) override {
    response->add_blocks()->set_free(1 << 24);
    return Done(context);
  }

 private:
  void FillModel(v1::ModelInfo* model) const {
    model->set_name("mock");
    model->set_fingerprint(fingerprint_);
    model->set_vocab_size(kVocabSize);
    model->set_context_tokens(kContextTokens);
    model->set_prefill_recipe("mock");
    model->set_decode_recipe("mock");
  }
  static grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  const v1::Role role_;
  const std::string instance_id_;
  const std::string fingerprint_;
};

v1::DecodeEvent TokenEvent(uint32_t index) {
  v1::DecodeEvent event;
  event.mutable_tokens()->set_index(index);
  event.mutable_tokens()->add_tokens()->set_id(kToken);
  if (index == 1) {
    event.mutable_tokens()->set_decode_queue_ms(0);
    event.mutable_tokens()->set_step_ms(0);
  }
  return event;
}

class MockDecode final : public v1::DecodeWorker::CallbackService {
 public:
  explicit MockDecode(WaitingLegs* legs) : legs_(legs) {}

  grpc::ServerWriteReactor<v1::DecodeEvent>* Decode(grpc::CallbackServerContext*,
                                                    const v1::DecodeRequest* request) override {
    const std::string transfer_id = request->attempt().transfer_id();
    // A leg that the router cancels before its prefill leg came is forgotten.
    auto stream =
        ServerStream<v1::DecodeEvent>::Create({.max_queued = kMaxQueued,
                                               .merge = {},
                                               .on_cancel = [this, transfer_id] { legs_->Take(transfer_id); },
                                               .on_done = {}});
    legs_->Put(transfer_id, {stream, request->request().max_tokens()});
    v1::DecodeEvent reserved;
    v1::Landing* const landing = reserved.mutable_reserved()->mutable_landing();
    landing->set_ticket(std::string(16, 't'));
    landing->set_instance_id("mock-decode");
    landing->set_address("127.0.0.1:1");
    landing->add_transports("grpc");
    landing->set_block_tokens(16);
    landing->set_protocol_version(kProtocolVersion);
    reserved.mutable_reserved()->set_reserve_ms(0);
    stream->Write(std::move(reserved));
    return stream->reactor();
  }

 private:
  WaitingLegs* const legs_;
};

class MockPrefill final : public v1::PrefillWorker::CallbackService {
 public:
  MockPrefill(WaitingLegs* legs, Pace* pace) : legs_(legs), pace_(pace) {}

  grpc::ServerWriteReactor<v1::PrefillEvent>* Prefill(grpc::CallbackServerContext*,
                                                      const v1::PrefillRequest* request) override {
    auto stream = ServerStream<v1::PrefillEvent>::Create(
        {.max_queued = 4, .merge = {}, .on_cancel = {}, .on_done = {}});
    const absl::Time begin = pace_->Now();
    pace_->At(begin, 0, [stream] {
      v1::PrefillEvent first;
      first.mutable_first_token()->mutable_token()->set_id(kToken);
      first.mutable_first_token()->set_queue_ms(0);
      first.mutable_first_token()->set_compute_ms(0);
      stream->Write(std::move(first));
      v1::PrefillEvent done;
      done.mutable_done()->set_handoff_ms(0);
      done.mutable_done()->set_transport("grpc");
      stream->Write(std::move(done));
      stream->Finish(absl::OkStatus());
    });
    const WaitingLegs::Leg leg = legs_->Take(request->attempt().transfer_id());
    for (uint32_t i = 0; leg.stream != nullptr && i < leg.tokens; ++i) {
      pace_->At(begin, i, [leg, i] { SendToken(leg, i); });
    }
    return stream->reactor();
  }

 private:
  static void SendToken(const WaitingLegs::Leg& leg, uint32_t index) {
    if (index == 0) {
      v1::DecodeEvent landed;
      landed.mutable_landed()->set_transport("grpc");
      leg.stream->Write(std::move(landed));
    }
    leg.stream->Write(TokenEvent(index));
    if (index + 1 < leg.tokens) return;
    v1::DecodeEvent done;
    done.mutable_done()->set_finish(v1::LEG_FINISH_LENGTH);
    leg.stream->Write(std::move(done));
    leg.stream->Finish(absl::OkStatus());
  }

  WaitingLegs* const legs_;
  Pace* const pace_;
};

// The same answers without a router.
class DirectInference final : public v1::Inference::CallbackService {
 public:
  explicit DirectInference(Pace* pace) : pace_(pace) {}

  grpc::ServerWriteReactor<v1::GenerateStreamResponse>* GenerateStream(
      grpc::CallbackServerContext*, const v1::GenerateRequest* request) override {
    auto stream = ServerStream<v1::GenerateStreamResponse>::Create(
        {.max_queued = kMaxQueued, .merge = {}, .on_cancel = {}, .on_done = {}});
    const uint32_t tokens = request->stopping().max_tokens();
    const absl::Time begin = pace_->Now();
    for (uint32_t i = 0; i < tokens; ++i) {
      pace_->At(begin, i, [stream, i, tokens, prompt = request->tokens().ids_size()] {
        v1::GenerateStreamResponse message;
        message.set_index(i);
        message.set_count(1);
        message.set_text(" the");
        if (i == 0) message.mutable_prompt()->set_prompt_tokens(prompt);
        if (i + 1 == tokens) {
          message.mutable_finish()->set_reason(v1::FINISH_REASON_LENGTH);
          message.mutable_usage()->set_completion_tokens(tokens);
        }
        stream->Write(std::move(message));
        if (i + 1 == tokens) stream->Finish(absl::OkStatus());
      });
    }
    return stream->reactor();
  }

 private:
  Pace* const pace_;
};

std::unique_ptr<grpc::Server> Serve(const std::string& port, const std::vector<grpc::Service*>& services) {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + port, grpc::InsecureServerCredentials());
  for (grpc::Service* service : services) builder.RegisterService(service);
  return builder.BuildAndStart();
}

int Run(const std::string& model, const std::string& prefill_port, const std::string& decode_port,
        const std::string& direct_port, Pace* pace) {
  const auto file = ModelFile::Open(model);
  if (!file.ok()) {
    std::fprintf(stderr, "mock_worker: %s\n", std::string(file.status().message()).c_str());
    return 1;
  }
  // The router takes workers of the model that it serves itself, by its hash.
  const std::string fingerprint = (*file)->content_hash() + "-mock";
  WaitingLegs legs;
  MockControl prefill_control(v1::ROLE_PREFILL, "mock-prefill", fingerprint);
  MockControl decode_control(v1::ROLE_DECODE, "mock-decode", fingerprint);
  MockControl direct_control(v1::ROLE_ROUTER, "mock-router", fingerprint);
  MockPrefill prefill(&legs, pace);
  MockDecode decode(&legs);
  DirectInference direct(pace);
  const auto prefill_server = Serve(prefill_port, {&prefill, &prefill_control});
  const auto decode_server = Serve(decode_port, {&decode, &decode_control});
  const auto direct_server = Serve(direct_port, {&direct, &direct_control});
  if (prefill_server == nullptr || decode_server == nullptr || direct_server == nullptr) {
    std::fprintf(stderr, "mock_worker: a port is taken\n");
    return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  for (grpc::Server* server : {prefill_server.get(), decode_server.get(), direct_server.get()}) {
    server->Shutdown(std::chrono::system_clock::now());
  }
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  double prefill_ms = 0;
  double step_ms = 0;
  if (argc != 7 || !absl::SimpleAtod(argv[5], &prefill_ms) || !absl::SimpleAtod(argv[6], &step_ms)) {
    std::fprintf(stderr,
                 "usage: mock_worker MODEL PREFILL_PORT DECODE_PORT DIRECT_PORT PREFILL_MS STEP_MS\n");
    return 2;
  }
  baton::Pace pace(absl::Milliseconds(prefill_ms), absl::Milliseconds(step_ms));
  return baton::Run(argv[1], argv[2], argv[3], argv[4], &pace);
}
