// A Router in the hands of workers that say anything: events of both legs, ends, infos and loads, in any
// order, among clients that come and go. Its invariants hold after every event, every client gets its tokens
// once and in order and one end, and at the end nothing is left.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/check.h"
#include "common/seeded_random_source.h"
#include "router/router.h"
#include "tests/fuzz/input.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/worker_info.h"

namespace baton {
namespace {

constexpr char kHash[] = "hash";

class Target {
 public:
  Target() {
    for (const char* name : {"p0", "p1", "d0", "d1"}) {
      const v1::Role role = name[0] == 'p' ? v1::ROLE_PREFILL : v1::ROLE_DECODE;
      router_.workers().Add(name, role);
      v1::GetServerInfoResponse info = WorkerInfo(role, std::string(name) + "-1", kHash);
      info.mutable_model()->set_context_tokens(1000);
      info.mutable_limits()->set_block_tokens(16);
      info.mutable_limits()->set_kv_capacity_tokens(400);
      info.mutable_limits()->set_max_running(3);
      router_.workers().OnInfo(name, info, now_);
    }
  }

  void Step(Input& input) {
    const uint8_t op = input.Byte() % 12;
    if (op == 0) return Call(input);
    if (op == 1) return Pass(absl::Milliseconds(input.Short()));
    if (op == 2) return Worker(input);
    const CallId call = 1 + input.Byte() % std::max<CallId>(calls_, 1);
    switch (op) {
      case 3:
        return Run(router_.OnClientGone(call, now_));
      case 4:
        return Run(router_.OnSlowReader(call, now_));
      case 5: {
        bool found = false;
        return Run(router_.OnAbort("r" + std::to_string(call), now_, found));
      }
      default:
        break;
    }
    const LegKey key = Key(call, input);
    switch (op) {
      case 6:
      case 7: {
        const std::string bytes = input.Bytes(input.Byte());
        v1::PrefillEvent prefill;
        v1::DecodeEvent decode;
        if (key.leg == Leg::kPrefill && prefill.ParseFromString(bytes))
          Run(router_.OnPrefillEvent(key, prefill, now_));
        if (key.leg == Leg::kDecode && decode.ParseFromString(bytes))
          Run(router_.OnDecodeEvent(key, decode, now_));
        return;
      }
      case 8: {
        v1::PrefillEvent event;
        if (input.Byte() & 1) event.mutable_first_token()->mutable_token()->set_id(input.Short());
        return Run(router_.OnPrefillEvent(key, event, now_));
      }
      case 9: {
        v1::DecodeEvent event;
        event.mutable_tokens()->set_index(input.Byte());
        for (int i = input.Byte() % 8; i > 0; --i) event.mutable_tokens()->add_tokens()->set_id(input.Byte());
        return Run(router_.OnDecodeEvent(key, event, now_));
      }
      case 10: {
        v1::DecodeEvent event;
        if (input.Byte() & 1) {
          event.mutable_reserved()->mutable_landing()->set_ticket("ticket");
        } else {
          event.mutable_landed();
        }
        return Run(router_.OnDecodeEvent(key, event, now_));
      }
      default:
        return Run(router_.OnLegClosed(
            key, absl::Status(static_cast<absl::StatusCode>(input.Byte() % 17), "x"), now_));
    }
  }

  // Time runs until every deadline has passed.
  void End() {
    for (int i = 0; i < 100 && router_.calls() > 0; ++i) Pass(absl::Minutes(1));
    BATON_CHECK(router_.calls() == 0);
    for (const auto& [call, state] : clients_) BATON_CHECK(state.ended);
  }

 private:
  struct Client {
    uint32_t tokens = 0;
    bool ended = false;
  };

  LegKey Key(CallId call, Input& input) {
    const uint8_t bits = input.Byte();
    return {call, static_cast<uint32_t>(bits >> 1 & 7), bits & 1 ? Leg::kDecode : Leg::kPrefill};
  }

  void Call(Input& input) {
    CallSpec spec;
    // The same id again and again is refused as in flight.
    spec.request_id = "r" + std::to_string(input.Byte() % 8 == 0 ? 1 : calls_ + 1);
    spec.tenant = std::string(1, static_cast<char>('a' + input.Byte() % 3));
    spec.prompt.assign(1 + input.Byte() % 200, 'x');
    spec.max_tokens = 1 + input.Byte() % 20;
    spec.stop_ids = {ByteTokenizer::kEnd};
    spec.sampling.set_seed(1);
    spec.arrival = now_;
    spec.deadline = now_ + absl::Seconds(1 + input.Byte());
    clients_[++calls_];
    Run(router_.OnCall(calls_, std::move(spec), now_));
  }

  void Worker(Input& input) {
    const char* const names[] = {"p0", "p1", "d0", "d1", "none"};
    const std::string name = names[input.Byte() % 5];
    const uint8_t what = input.Byte() % 3;
    const std::string bytes = input.Bytes(input.Byte());
    v1::GetServerInfoResponse info;
    v1::GetLoadResponse load;
    if (what == 0 && info.ParseFromString(bytes)) router_.workers().OnInfo(name, info, now_);
    if (what == 1 && load.ParseFromString(bytes)) router_.workers().OnLoad(name, load, now_);
    if (what == 2) router_.workers().OnUnreachable(name, "silent");
    Run(router_.OnWorkersChanged(now_));
  }

  void Pass(absl::Duration time) {
    now_ += time;
    for (int i = 0; i < 1000 && router_.next_timer() <= now_; ++i) Run(router_.OnTimer(now_));
  }

  void Run(const RouterActions& actions) {
    for (const RouterAction& action : actions) {
      if (const auto* send = std::get_if<SendToClient>(&action)) {
        Client& client = clients_.at(send->call);
        BATON_CHECK(!client.ended);
        BATON_CHECK(send->response.count() == 0 || send->response.index() == client.tokens);
        client.tokens += send->response.count();
      } else if (const auto* end = std::get_if<EndCall>(&action)) {
        BATON_CHECK(!std::exchange(clients_.at(end->call).ended, true));
      }
    }
    const absl::Status status = router_.CheckInvariants();
    BATON_CHECK(status.ok());
  }

  ByteTokenizer tokenizer_;
  SeededRandomSource random_{1};
  Router router_{RouterOptions(), kHash, &tokenizer_, &random_};
  absl::Time now_ = absl::FromUnixSeconds(1000);
  CallId calls_ = 0;
  std::map<CallId, Client> clients_;
};

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  baton::Input input(data, size);
  baton::Target target;
  while (!input.empty()) target.Step(input);
  target.End();
  return 0;
}
