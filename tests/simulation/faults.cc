#include "tests/simulation/faults.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr absl::Duration kSlowestExtra = absl::Milliseconds(300);  // of a message on a slow link

}  // namespace

const std::string& InjectedFault::worker() const {
  static const std::string kNone;
  switch (row->place) {
    case FaultPlace::kPrefill:
    case FaultPlace::kPrefillLink:
      return prefill;
    case FaultPlace::kDecode:
    case FaultPlace::kDecodeLink:
      return decode;
    default:
      return kNone;
  }
}

Faults::Faults(SimulatedSystem* system, std::function<void(const InjectedFault&)> on_injected)
    : system_(system), world_(&system->world()), on_injected_(std::move(on_injected)) {
  system->board().Listen([this](CallId call, CallPhase phase) { OnPhase(call, phase); });
}

void Faults::OnPhase(CallId call, CallPhase phase) {
  std::erase_if(plans_, [&](const Plan& plan) {
    if (plan.call != call || plan.phase != phase) return false;
    world_->After(plan.after, [this, plan] { Inject(plan); });
    return true;
  });
}

std::string Faults::Victim(const std::string& used, v1::Role role) {
  if (!used.empty()) return used;
  std::vector<std::string> all = system_->worker_addresses();
  std::erase_if(all, [&](const std::string& address) { return RoleOfAddress(address) != role; });
  return all.empty() ? "" : all[world_->Below(static_cast<uint32_t>(all.size()))];
}

absl::Duration Faults::DrawTime() {
  // Short ones are over before anybody notices.
  return world_->Chance(0.4) ? world_->Between(absl::Milliseconds(1), absl::Milliseconds(300))
                             : world_->Between(absl::Milliseconds(300), kLongest);
}

void Faults::Inject(const Plan& plan) {
  const CallBoard::Call& call = system_->board().call(plan.call);
  if (system_->answer(plan.call).ended) return;
  const AttemptView attempt = call.running() ? call.attempts.back() : AttemptView();
  // The router may be through with it while the end is on its way to the client.
  InjectedFault fault{plan.row, plan.call, std::min(call.phase, CallPhase::kDecoding)};
  fault.prefill = Victim(system_->AddressOf(attempt.prefill), v1::ROLE_PREFILL);
  fault.decode = Victim(attempt.decode, v1::ROLE_DECODE);
  const FaultPlace place = plan.row->place;
  const bool needs_prefill =
      place == FaultPlace::kPrefill || place == FaultPlace::kPrefillLink || place == FaultPlace::kPairLink;
  if (needs_prefill && fault.prefill.empty()) return;
  if (!fault.worker().empty() && !system_->worker(fault.worker()).alive()) return;
  fault.begin = fault.end = world_->now();
  Begin(fault);
  if (world_->tracing()) {
    world_->Trace(StrCat("*** ", plan.row->name, " at call ", plan.call, ", ", CallPhaseName(call.phase),
                         " (", fault.prefill, ", ", fault.decode, "), for ",
                         absl::FormatDuration(fault.end - fault.begin)));
  }
  injected_.push_back(fault);
  on_injected_(fault);
}

void Faults::Begin(InjectedFault& fault) {
  switch (fault.row->place) {
    case FaultPlace::kPrefill:
    case FaultPlace::kDecode:
      return BeginOnWorker(fault);
    case FaultPlace::kRouter:
      return BeginOnRouter(fault);
    case FaultPlace::kCall:
      return BeginOnCall(fault);
    default:
      return BeginOnLink(fault);
  }
}

void Faults::BeginOnRouter(InjectedFault& fault) {
  SimRouter* const router = &system_->router();
  switch (fault.row->kind) {
    case FaultKind::kCrash:
      fault.end += world_->Between(absl::Milliseconds(1), absl::Seconds(1));
      router->Kill(world_->Chance(0.5));
      return RestartRouterAt(fault.end);
    case FaultKind::kHang: {
      const bool dies = world_->Chance(0.3);
      fault.end += DrawTime();
      router->Stop();
      return world_->At(fault.end, [this, router, dies] {
        if (&system_->router() != router) return;
        if (dies) return system_->RestartRouter();
        router->Continue();
      });
    }
    case FaultKind::kDrain:
      router->Drain();
      return ExitWhenDrained(router, injected_.size());
    default:
      BATON_CHECK(false);
  }
}

void Faults::RestartRouterAt(absl::Time when) {
  world_->At(when, [this] {
    if (!system_->router().alive()) system_->RestartRouter();
  });
}

void Faults::ExitWhenDrained(SimRouter* router, size_t fault) {
  world_->After(absl::Milliseconds(20), [this, router, fault] {
    if (&system_->router() != router || !router->alive()) return;
    injected_[fault].end = world_->now();
    if (router->router().calls() > 0) return ExitWhenDrained(router, fault);
    router->Kill();
    injected_[fault].end += world_->Between(absl::Milliseconds(1), absl::Milliseconds(500));
    RestartRouterAt(injected_[fault].end);
  });
}

void Faults::AtEnd(const InjectedFault& fault, SimWorker* worker, std::function<void(SimWorker&)> recover) {
  world_->At(fault.end, [this, address = worker->address(), worker, recover = std::move(recover)] {
    if (&system_->worker(address) == worker && worker->alive()) recover(*worker);
  });
}

void Faults::BeginOnWorker(InjectedFault& fault) {
  const std::string address = fault.worker();
  SimWorker* const worker = &system_->worker(address);
  const bool dies = world_->Chance(0.3);
  switch (fault.row->kind) {
    case FaultKind::kCrash: {
      fault.end += world_->Between(absl::Milliseconds(1), absl::Seconds(2));
      worker->Kill(world_->Chance(0.5));
      world_->At(fault.end, [this, address, worker] {
        if (&system_->worker(address) == worker) system_->StartWorker(address);
      });
      return;
    }
    case FaultKind::kHang:
      fault.end += DrawTime();
      worker->Stop();
      return AtEnd(fault, worker, [this, dies](SimWorker& hung) {
        if (dies) return system_->StartWorker(hung.address());
        hung.Continue();
      });
    case FaultKind::kWedge:
      fault.end += DrawTime();
      worker->Wedge();
      return AtEnd(fault, worker, [this, dies](SimWorker& stuck) {
        if (dies) return system_->StartWorker(stuck.address());
        stuck.Unwedge();
      });
    case FaultKind::kSlow:
      fault.end += DrawTime();
      worker->set_slowness(2 + world_->Below(20));
      return AtEnd(fault, worker, [](SimWorker& slow) { slow.set_slowness(1); });
    case FaultKind::kDrain:
      worker->Drain();
      return ExitWhenIdle(worker, [this, address] { system_->StartWorker(address); });
    case FaultKind::kScaleDown: {
      worker->Drain();
      const bool leaves_first = world_->Chance(0.5);
      if (leaves_first) system_->router().RemoveWorker(address);
      return ExitWhenIdle(worker, [this, address, leaves_first] {
        if (!leaves_first) system_->router().RemoveWorker(address);
        world_->After(absl::Seconds(1), [this, address] { system_->StartWorker(address); });
      });
    }
    default:
      BATON_CHECK(false);
  }
}

void Faults::ExitWhenIdle(SimWorker* worker, std::function<void()> then) {
  world_->After(absl::Milliseconds(20), [this, worker, then = std::move(then)]() mutable {
    if (&system_->worker(worker->address()) != worker) return;  // something else has replaced it
    if (worker->alive() && !worker->Idle()) return ExitWhenIdle(worker, std::move(then));
    worker->Kill();
    world_->After(world_->Between(absl::Milliseconds(1), absl::Milliseconds(500)), std::move(then));
  });
}

void Faults::BeginOnLink(InjectedFault& fault) {
  const FaultPlace place = fault.row->place;
  const std::string a = place == FaultPlace::kClientLink ? kClientAddress
                        : place == FaultPlace::kPairLink ? fault.prefill
                                                         : kRouterAddress;
  const std::string b = place == FaultPlace::kClientLink    ? kRouterAddress
                        : place == FaultPlace::kPrefillLink ? fault.prefill
                                                            : fault.decode;
  SimNetwork& network = system_->network();
  switch (fault.row->kind) {
    case FaultKind::kCut:
      return network.Cut(a, b);
    case FaultKind::kPartition: {
      const absl::Duration time = DrawTime();
      fault.end += time;
      network.Block(a, b, time);
      return network.Block(b, a, time);
    }
    case FaultKind::kHalfOpen: {
      const absl::Duration time = DrawTime();
      fault.end += time;
      return world_->Chance(0.5) ? network.Block(a, b, time) : network.Block(b, a, time);
    }
    case FaultKind::kSlowLink: {
      const absl::Duration time = DrawTime();
      fault.end += time;
      return network.Slow(a, b, kSlowestExtra, time);
    }
    case FaultKind::kReopen:
      return network.DuplicateOpens(a, b, 3);
    case FaultKind::kHostile:
      fault.end += DrawTime();
      network.SetHostility(a, b, {.duplicate = 0.2, .swap = 0.2});
      return world_->At(fault.end, [this, a, b] { system_->network().SetHostility(a, b, {}); });
    case FaultKind::kCorrupt:
      return dynamic_cast<SimPrefill&>(system_->worker(fault.prefill)).CorruptNextData();
    default:
      BATON_CHECK(false);
  }
}

void Faults::BeginOnCall(InjectedFault& fault) {
  const CallId call = fault.call;
  switch (fault.row->kind) {
    case FaultKind::kCancel:
      return system_->client().Cancel(call);
    case FaultKind::kAbort:
      system_->router().Abort(StrCat("request-", call));
      return system_->router().Abort(StrCat("request-", call));
    case FaultKind::kDeadline:
      return;  // of the call itself: it passes now
    case FaultKind::kSlowReader:
      fault.end += DrawTime();
      system_->client().PauseReading(call);
      return world_->At(fault.end, [this, call] { system_->client().ResumeReading(call); });
    default:
      BATON_CHECK(false);
  }
}

absl::Time Faults::DisturbedUntil(const std::string& worker) const {
  absl::Time until = absl::InfinitePast();
  for (const InjectedFault& fault : injected_) {
    const bool touches = fault.worker() == worker || fault.row->place == FaultPlace::kRouter;
    if (touches) until = std::max(until, fault.end);
  }
  return until;
}

absl::Time Faults::QuietAfter() const {
  absl::Time until = absl::InfinitePast();
  for (const InjectedFault& fault : injected_) until = std::max(until, fault.end);
  return until;
}

}  // namespace baton
