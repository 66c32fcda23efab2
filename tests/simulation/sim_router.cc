#include "tests/simulation/sim_router.h"

#include <utility>

#include "common/check.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "router/client_stream.h"
#include "tests/simulation/sim_decode.h"
#include "tests/simulation/sim_prefill.h"

namespace baton {

SimRouter::SimRouter(const WorkerParts& parts, std::string instance_id, const Options& options,
                     const Tokenizer* tokenizer, SimClient* client)
    : SimProcess(parts.world, parts.network, kRouterAddress, std::move(instance_id), absl::ZeroDuration()),
      options_(options),
      board_(parts.board),
      client_(client),
      router_(options.router, options.model_hash, tokenizer, &parts.world->random()),
      timer_(&loop_) {
  loop_.Post([this] { ProbeAll(); });
}

void SimRouter::AddWorker(const std::string& address, v1::Role role) {
  router_.workers().Add(address, role);
  workers_.insert(address);
}

void SimRouter::RemoveWorker(const std::string& address) {
  workers_.erase(address);
  loop_.Post([this, address] {
    router_.workers().Remove(address);
    Perform(router_.OnWorkersChanged(world_->now()));
  });
}

void SimRouter::ProbeAll() {
  if (!probing_) return;
  for (const std::string& address : workers_) Probe(address);
  loop_.Reach(world_->now() + options_.probe_interval, [this] { loop_.Post([this] { ProbeAll(); }); });
}

void SimRouter::Probe(const std::string& address) {
  const absl::Time asked = world_->now();
  network_->Open(
      *this, Thread::kLoop, address, Thread::kControl, "probe", world_->now() + options_.probe_timeout,
      [this, address, asked](SimProcess& server, const std::shared_ptr<SimStream>& stream) {
        const SimWorker* const worker = dynamic_cast<const SimWorker*>(&server);
        BATON_CHECK(worker != nullptr);
        stream->Send(SimStream::kServer, "info", [this, address, asked, info = worker->Info()] {
          router_.workers().OnInfo(address, info, asked);
          Perform(router_.OnWorkersChanged(world_->now()));
        });
        stream->Send(SimStream::kServer, "load", [this, address, load = worker->Load()] {
          router_.workers().OnLoad(address, load, world_->now());
          Perform(router_.OnWorkersChanged(world_->now()));
        });
        stream->Finish(absl::OkStatus());
      },
      [this, address](const absl::Status& status) {
        if (status.ok()) return;
        router_.workers().OnUnreachable(address, absl::StatusCodeToString(status.code()));
        Perform(router_.OnWorkersChanged(world_->now()));
      });
}

void SimRouter::OnGenerate(const std::shared_ptr<SimStream>& stream, CallId id, CallSpec spec,
                           absl::Duration time_left, OnResponse on_response) {
  if (draining_) return stream->Finish(DrainingStatus());
  calls_[id] = {stream, std::move(on_response)};
  stream->set_on_closed_at_server(
      [this, id](const absl::Status&) { Perform(router_.OnClientGone(id, world_->now())); });
  spec.arrival = world_->now();
  spec.deadline = spec.arrival + time_left;
  const absl::Time tokenized = spec.arrival + spec.tokenize;
  loop_.Reach(tokenized, [this, id, spec = std::move(spec)] {
    if (calls_.at(id).stream->open(SimStream::kServer)) {
      Perform(router_.OnCall(id, spec, world_->now()));
    } else {
      calls_.erase(id);
    }
  });
}

void SimRouter::Abort(const std::string& request_id) {
  loop_.Post([this, request_id] {
    bool found = false;
    Perform(router_.OnAbort(request_id, world_->now(), found));
  });
}

void SimRouter::Perform(RouterActions actions) {
  std::vector<LegView> cancelled;
  for (RouterAction& action : actions) {
    if (auto* prefill = std::get_if<OpenPrefillLeg>(&action)) {
      Do(*prefill);
    } else if (auto* decode = std::get_if<OpenDecodeLeg>(&action)) {
      Do(*decode);
    } else if (auto* cancel = std::get_if<CancelLeg>(&action)) {
      Do(*cancel, &cancelled);
    } else if (auto* send = std::get_if<SendToClient>(&action)) {
      Do(*send);
    } else if (auto* end = std::get_if<EndCall>(&action)) {
      Do(*end, cancelled);
    } else if (auto* lost = std::get_if<AttemptLost>(&action); lost != nullptr && world_->tracing()) {
      world_->Trace(StrCat("router: call ", lost->call, " lost attempt ", lost->leg.attempt, " on ",
                           lost->worker, ": ", lost->status.ToString()));
    }
  }
  timer_.Arm(router_.next_timer(), [this] { Perform(router_.OnTimer(world_->now())); });
}

template <typename Worker, typename Request, typename OnEvent>
void SimRouter::OpenLeg(const LegKey& key, const std::string& address, Request request, absl::Time deadline,
                        OnEvent on_event) {
  LegView& leg = legs_[key];
  leg = {key, *TransferId::FromBytes(request.attempt().transfer_id()), address, nullptr};
  const absl::Duration time_left = deadline - world_->now();
  const char* const name = key.leg == Leg::kPrefill ? "prefill leg of call " : "decode leg of call ";
  leg.stream = network_->Open(
      *this, Thread::kLoop, address, Thread::kLoop, StrCat(name, key.call, ".", key.attempt), deadline,
      [request = std::move(request), time_left, on_event](SimProcess& server,
                                                          const std::shared_ptr<SimStream>& stream) {
        Worker* const worker = dynamic_cast<Worker*>(&server);
        BATON_CHECK(worker != nullptr);
        worker->OnRequest(stream, request, time_left, on_event);
      },
      [this, key](const absl::Status& status) {
        legs_.erase(key);
        if (key.leg == Leg::kDecode) board_->OnAttemptEnded(key.call, world_->now());
        Perform(router_.OnLegClosed(key, status, world_->now()));
      });
}

void SimRouter::Do(OpenPrefillLeg& action) {
  OpenLeg<SimPrefill>(action.key, action.worker, std::move(action.request), action.deadline,
                      [this, key = action.key](const v1::PrefillEvent& event) {
                        Perform(router_.OnPrefillEvent(key, event, world_->now()));
                      });
}

void SimRouter::Do(OpenDecodeLeg& action) {
  const int replayed = action.request.request().output_size();
  if (const int taken = calls_[action.key.call].tokens; replayed != taken) {
    replays_ = absl::InternalError(StrCat("call ", action.key.call, " has ", taken,
                                          " tokens, of which its next attempt replays ", replayed));
  }
  board_->OnAttempt(action.key.call,
                    {*TransferId::FromBytes(action.request.attempt().transfer_id()),
                     action.request.handoff().prefill_instance_id(), action.worker, world_->now()});
  OpenLeg<SimDecode>(action.key, action.worker, std::move(action.request), action.deadline,
                     [this, key = action.key](const v1::DecodeEvent& event) {
                       Perform(router_.OnDecodeEvent(key, event, world_->now()));
                     });
}

void SimRouter::Do(CancelLeg& action, std::vector<LegView>* cancelled) {
  const auto it = legs_.find(action.key);
  if (it == legs_.end()) return;
  it->second.stream->Cancel();
  cancelled->push_back(it->second);
  legs_.erase(it);
  if (action.key.leg == Leg::kDecode) board_->OnAttemptEnded(action.key.call, world_->now());
  loop_.Post([this, key = action.key] {
    Perform(router_.OnLegClosed(key, absl::CancelledError("cancelled"), world_->now()));
  });
}

void SimRouter::Do(SendToClient& action) {
  const auto it = calls_.find(action.call);
  BATON_CHECK(it != calls_.end());  // nothing is sent to a call that has ended
  ClientCall& call = it->second;
  call.tokens += static_cast<int>(action.response.count());
  if (call.has_hole) return;
  call.has_hole = client_->unread(action.call) >= options_.max_unread;
  if (call.has_hole) {
    loop_.Post([this, id = action.call] { Perform(router_.OnSlowReader(id, world_->now())); });
    return;
  }
  call.stream->Send(SimStream::kServer, action.response.has_finish() ? "finish" : "token",
                    [response = action.response, on_response = call.on_response] { on_response(response); });
}

void SimRouter::Do(EndCall& action, const std::vector<LegView>& cancelled) {
  if (world_->tracing()) {
    world_->Trace(
        StrCat("router: call ", action.call, " ends while ", action.phase, ": ", action.status.ToString()));
  }
  const auto it = calls_.find(action.call);
  BATON_CHECK(it != calls_.end());  // a call ends once
  it->second.stream->Finish(it->second.has_hole ? SlowReaderError() : action.status);
  calls_.erase(it);
  board_->OnEnded(action.call);
  if (on_call_ended_) on_call_ended_(action.call, cancelled);
}

absl::Status SimRouter::CheckInvariants() const {
  RETURN_IF_ERROR(replays_);
  return router_.CheckInvariants();
}

}  // namespace baton
