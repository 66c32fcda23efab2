#include "tests/simulation/simulated_system.h"

#include <utility>

#include "common/check.h"
#include "common/str_cat.h"

namespace baton {

SimulatedSystem::SimulatedSystem(const Options& options)
    : options_(options),
      world_(options.seed),
      router_(std::make_unique<Router>(options.router, "scripted", &tokenizer_, &world_.random())),
      router_timer_(&world_) {
  for (uint32_t i = 0; i < options.prefill_workers; ++i) AddWorker(StrCat("prefill-", i));
  for (uint32_t i = 0; i < options.decode_workers; ++i) AddWorker(StrCat("decode-", i));
  Probe();
}

SimulatedSystem::~SimulatedSystem() = default;

void SimulatedSystem::AddWorker(const std::string& name) {
  const std::string instance = StrCat("instance-", ++instances_);
  const bool prefill = name[0] == 'p';
  if (prefill) {
    workers_[name] = std::make_shared<SimPrefill>(
        &world_, options_.delays, name, instance, options_.prefill_engine, options_.prefill,
        [this](const std::string& address) { return std::dynamic_pointer_cast<SimDecode>(Find(address)); });
  } else {
    workers_[name] = std::make_shared<SimDecode>(&world_, options_.delays, name, instance,
                                                 options_.decode_engine, options_.decode);
  }
  router_->workers().Add(name, prefill ? v1::ROLE_PREFILL : v1::ROLE_DECODE);
}

std::shared_ptr<SimWorker> SimulatedSystem::Find(const std::string& name) const {
  const auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : it->second;
}

void SimulatedSystem::Probe() {
  for (const auto& [name, worker] : workers_) {
    if (worker->alive()) {
      router_->workers().OnInfo(name, worker->Info());
    } else {
      router_->workers().OnUnreachable(name, "connection refused");
    }
  }
  Perform(router_->OnWorkersChanged(world_.now()));
  world_.After(options_.probe_interval, [this] { Probe(); });
}

CallId SimulatedSystem::Submit(absl::Time when, CallSpec spec) {
  const CallId id = next_call_++;
  Answer& answer = answers_[id];
  ++open_calls_;
  spec.request_id = StrCat("request-", id);
  spec.return_tokens = true;
  spec.sampling.set_seed(id);
  if (spec.deadline == absl::Time()) spec.deadline = when + absl::Minutes(10);
  world_.At(when, [this, id, &answer, spec = std::move(spec)]() mutable {
    answer.sent = spec.arrival = world_.now();
    const absl::Duration tokenize = spec.tokenize;
    world_.After(tokenize, [this, id, spec = std::move(spec)]() mutable {
      Perform(router_->OnCall(id, std::move(spec), world_.now()));
    });
  });
  return id;
}

void SimulatedSystem::CancelAt(absl::Time when, CallId call) {
  world_.At(when, [this, call] { Perform(router_->OnClientGone(call, world_.now())); });
}

void SimulatedSystem::KillAt(absl::Time when, const std::string& worker) {
  world_.At(when, [this, worker] { workers_.at(worker)->Kill(); });
}

void SimulatedSystem::RestartAt(absl::Time when, const std::string& worker) {
  world_.At(when, [this, worker] {
    if (workers_.at(worker)->alive()) workers_.at(worker)->Kill();
    dead_.push_back(workers_.at(worker));
    AddWorker(worker);
  });
}

void SimulatedSystem::OnLegClosedLater(const LegKey& key, const absl::Status& status) {
  world_.After(absl::ZeroDuration(), [this, key, status] {
    legs_.erase(key);
    Perform(router_->OnLegClosed(key, status, world_.now()));
  });
}

template <typename Worker, typename Request, typename OnEvent>
void SimulatedSystem::OpenLeg(const LegKey& key, const std::string& name, Request request,
                              absl::Time deadline, OnEvent on_event) {
  const std::shared_ptr<Worker> worker = std::dynamic_pointer_cast<Worker>(Find(name));
  BATON_CHECK(worker != nullptr);
  const auto leg = std::make_shared<SimLeg>(&world_, options_.delays);
  leg->closed_at_router = [this, key, leg = leg.get()](const absl::Status& status) {
    leg->router_open = false;
    OnLegClosedLater(key, status);
  };
  legs_[key] = {leg, worker};
  leg->to_worker.Send([leg, worker, request = std::move(request), deadline, on_event] {
    if (worker->alive()) {
      worker->OnRequest(leg, request, deadline, on_event);
    } else {
      leg->to_router.Send([leg] {
        if (leg->router_open) leg->closed_at_router(absl::UnavailableError("connection refused"));
      });
    }
  });
}

void SimulatedSystem::Perform(RouterActions actions) {
  for (RouterAction& action : actions) {
    if (auto* prefill = std::get_if<OpenPrefillLeg>(&action)) {
      OpenLeg<SimPrefill>(prefill->key, prefill->worker, std::move(prefill->request), prefill->deadline,
                          [this, key = prefill->key](const v1::PrefillEvent& event) {
                            Perform(router_->OnPrefillEvent(key, event, world_.now()));
                          });
    } else if (auto* decode = std::get_if<OpenDecodeLeg>(&action)) {
      OpenLeg<SimDecode>(decode->key, decode->worker, std::move(decode->request), decode->deadline,
                         [this, key = decode->key](const v1::DecodeEvent& event) {
                           Perform(router_->OnDecodeEvent(key, event, world_.now()));
                         });
    } else if (auto* cancel = std::get_if<CancelLeg>(&action)) {
      const auto it = legs_.find(cancel->key);
      if (it == legs_.end()) continue;
      const auto [leg, worker] = it->second;
      if (!std::exchange(leg->router_open, false)) continue;
      leg->to_worker.Send([leg = leg, worker = worker] { worker->OnLegCancelled(leg); });
      OnLegClosedLater(cancel->key, absl::CancelledError("cancelled"));
    } else if (auto* send = std::get_if<SendToClient>(&action)) {
      Deliver(std::move(*send));
    } else if (auto* end = std::get_if<EndCall>(&action)) {
      Answer& answer = answers_.at(end->call);
      BATON_CHECK(!answer.ended);
      answer.ended = true;
      answer.status = end->status;
      answer.ended_at = world_.now();
      answer.usage = end->usage;
      answer.timings = end->timings;
      --open_calls_;
    }
  }
  router_timer_.Arm(router_->next_timer(), [this] { Perform(router_->OnTimer(world_.now())); });
}

void SimulatedSystem::Deliver(SendToClient send) {
  Answer& answer = answers_.at(send.call);
  BATON_CHECK(!answer.ended);
  const v1::GenerateStreamResponse& response = send.response;
  if (response.count() > 0) {
    if (answer.tokens.empty()) answer.first_token = world_.now();
    answer.indexes.push_back(response.index());
  }
  answer.tokens.insert(answer.tokens.end(), response.tokens().begin(), response.tokens().end());
  answer.logprobs.insert(answer.logprobs.end(), response.logprobs().begin(), response.logprobs().end());
  answer.text += response.text();
  if (response.has_prompt()) answer.prompt = response.prompt();
  if (response.has_finish()) answer.finish = response.finish();
}

bool SimulatedSystem::Done() const {
  if (open_calls_ > 0 || router_->calls() > 0) return false;
  for (const auto& [name, worker] : workers_) {
    if (worker->alive() && !worker->Idle()) return false;
  }
  return true;
}

absl::Status SimulatedSystem::Run(absl::Duration until) {
  const absl::Time end = world_.now() + until;
  for (uint64_t events = 0; !Done(); ++events) {
    if (world_.next_event() > end || !world_.RunOne()) {
      return absl::DeadlineExceededError(StrCat(open_calls_, " calls are still open"));
    }
    if (events % options_.check_every != 0) continue;
    if (absl::Status status = CheckInvariants(); !status.ok()) return status;
  }
  return CheckInvariants();
}

absl::Status SimulatedSystem::CheckInvariants() const {
  for (const auto& [name, worker] : workers_) {
    if (!worker->alive()) continue;
    if (absl::Status status = worker->CheckInvariants(); !status.ok()) {
      return absl::InternalError(StrCat(name, ": ", std::string(status.message())));
    }
  }
  return router_->CheckInvariants();
}

absl::Status SimulatedSystem::CheckQuiescent() const {
  for (const auto& [name, worker] : workers_) {
    if (!worker->alive()) continue;
    if (!worker->Idle()) return absl::InternalError(StrCat(name, " still holds something"));
    if (absl::Status status = worker->pools().CheckAllFree(); !status.ok()) {
      return absl::InternalError(StrCat(name, ": ", std::string(status.message())));
    }
  }
  const v1::ListWorkersResponse list = router_->workers().List();
  for (const v1::Worker& worker : list.workers()) {
    if (worker.assigned() != 0)
      return absl::InternalError(StrCat(worker.name(), " is still counted as busy"));
  }
  return absl::OkStatus();
}

uint64_t SimulatedSystem::bytes_landed() const {
  uint64_t bytes = 0;
  for (const auto& [name, worker] : workers_) {
    if (const auto* decode = dynamic_cast<const SimDecode*>(worker.get())) bytes += decode->bytes_landed();
  }
  return bytes;
}

std::vector<TokenId> SimulatedSystem::Expected(const CallSpec& spec) const {
  return ScriptedEngine::ExpectedAnswer(options_.decode_engine, spec.prompt, spec.max_tokens);
}

}  // namespace baton
