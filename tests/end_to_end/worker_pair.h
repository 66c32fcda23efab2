#ifndef BATON_TESTS_END_TO_END_WORKER_PAIR_H_
#define BATON_TESTS_END_TO_END_WORKER_PAIR_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "common/metrics.h"
#include "common/steady_clock.h"
#include "common/system_random_source.h"
#include "common/transfer_id.h"
#include "decode_service/decode_server.h"
#include "engine/device/device.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"
#include "kv_transfer/backends/inproc/inproc_backend.h"
#include "prefill_service/prefill_server.h"
#include "tests/support/leg_client.h"

namespace baton {

// A prefill and a decode service in this process, each over an engine and on a port of its own, and a client
// of both that plays the router.
class WorkerPair {
 public:
  struct Answer {
    std::vector<TokenId> tokens;
    std::vector<float> logprobs;  // where asked for
    v1::LegFinish finish = v1::LEG_FINISH_UNSPECIFIED;
    double kv_bytes = 0;  // moved by the handoff
    std::string transport;
    absl::Status status;          // of the decode leg
    absl::Status prefill_status;  // of the prefill leg
  };

  // The engines outlive the pair. `transport`: "grpc" or "inproc".
  WorkerPair(Engine* prefill_engine, Engine* decode_engine, const std::string& transport,
             const PrefillSchedulerOptions& prefill_options, const DecodeSchedulerOptions& decode_options)
      : prefill_metrics_("prefill", "model"), decode_metrics_("decode", "model") {
    const KvBackendKind kind = transport == "grpc" ? GrpcBackend() : InprocBackend(&rendezvous_);
    auto decode = DecodeServer::Start({}, decode_options, "", {kind},
                                      {.engine = decode_engine,
                                       .device = device_.get(),
                                       .clock = &clock_,
                                       .random = &random_,
                                       .metrics = &decode_metrics_,
                                       .drain = &decode_drain_});
    BATON_CHECK(decode.ok());
    decode_server_ = *std::move(decode);
    auto prefill = PrefillServer::Start({}, prefill_options, {kind},
                                        {.engine = prefill_engine,
                                         .device = device_.get(),
                                         .clock = &clock_,
                                         .random = &random_,
                                         .metrics = &prefill_metrics_,
                                         .drain = &prefill_drain_});
    BATON_CHECK(prefill.ok());
    prefill_server_ = *std::move(prefill);
    prefill_client_ = std::make_unique<WorkerClient>(prefill_server_->address().ToString());
    decode_client_ = std::make_unique<WorkerClient>(decode_server_->address().ToString());
    // Answered by the loops, after their warm-up: from here on every step is a test's own.
    BATON_CHECK(!prefill_client_->Abort("nobody") && !decode_client_->Abort("nobody"));
  }

  WorkerClient& prefill() { return *prefill_client_; }
  WorkerClient& decode() { return *decode_client_; }
  Metrics& decode_metrics() { return decode_metrics_; }
  const std::string& prefill_instance_id() const { return prefill_server_->instance_id(); }
  void StopPrefill() { prefill_server_.reset(); }
  void StopDecode() { decode_server_.reset(); }

  // One request's legs, opened one after the other as a router does.
  struct Legs {
    std::unique_ptr<DecodeLeg> decode;
    std::unique_ptr<PrefillLeg> prefill;  // null when decode refused
  };
  Legs Open(const v1::TokenRequest& request, const std::string& request_id) {
    v1::Attempt attempt;
    attempt.set_request_id(request_id);
    attempt.set_transfer_id(TransferId::Mint(random_).ToBytes());
    v1::DecodeRequest decode;
    *decode.mutable_attempt() = attempt;
    *decode.mutable_request() = request;
    decode.mutable_handoff()->set_prefill_instance_id(prefill_instance_id());
    Legs legs;
    legs.decode = decode_client_->Decode(decode);
    const std::optional<v1::DecodeEvent> reserved = legs.decode->Next();
    if (!reserved) return legs;
    v1::PrefillRequest prefill;
    *prefill.mutable_attempt() = attempt;
    *prefill.mutable_request() = request;
    *prefill.mutable_landing() = reserved->reserved().landing();
    legs.prefill = prefill_client_->Prefill(prefill);
    return legs;
  }

  Answer Disaggregated(const v1::TokenRequest& request, const std::string& request_id = "request") {
    Legs legs = Open(request, request_id);
    Answer answer = Read(legs.decode.get());
    if (legs.prefill == nullptr) return answer;
    while (const std::optional<v1::PrefillEvent> event = legs.prefill->Next()) {
      // Both legs bring the same token 0.
      if (event->first_token().has_token())
        BATON_CHECK(event->first_token().token().id() == answer.tokens.at(0));
      if (event->has_done()) BATON_CHECK(event->done().kv_bytes() == answer.kv_bytes);
    }
    answer.prefill_status = legs.prefill->Finish();
    return answer;
  }

  Answer Local(const v1::TokenRequest& request) {
    v1::DecodeRequest decode;
    decode.mutable_attempt()->set_transfer_id(TransferId::Mint(random_).ToBytes());
    *decode.mutable_request() = request;
    decode.mutable_local();
    return Read(decode_client_->Decode(decode).get());
  }

  // What is left of a decode leg, from token 0 on.
  static Answer Read(DecodeLeg* leg) {
    Answer answer;
    while (const std::optional<v1::DecodeEvent> event = leg->Next()) {
      if (event->has_landed()) {
        answer.kv_bytes = event->landed().kv_bytes();
        answer.transport = event->landed().transport();
      }
      if (event->has_tokens()) BATON_CHECK(event->tokens().index() == answer.tokens.size());
      for (const v1::LegToken& token : event->tokens().tokens()) {
        answer.tokens.push_back(token.id());
        if (token.has_logprob()) answer.logprobs.push_back(token.logprob());
      }
      if (event->has_done()) answer.finish = event->done().finish();
    }
    answer.status = leg->Finish();
    return answer;
  }

 private:
  SteadyClock clock_;
  SystemRandomSource random_;
  InprocRendezvous rendezvous_;
  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  Metrics prefill_metrics_;
  Metrics decode_metrics_;
  DrainState prefill_drain_;
  DrainState decode_drain_;
  std::unique_ptr<DecodeServer> decode_server_;
  std::unique_ptr<PrefillServer> prefill_server_;
  std::unique_ptr<WorkerClient> prefill_client_;
  std::unique_ptr<WorkerClient> decode_client_;
};

}  // namespace baton

#endif  // BATON_TESTS_END_TO_END_WORKER_PAIR_H_
