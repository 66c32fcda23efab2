#include "tests/simulation/checker.h"

#include <algorithm>
#include <set>

#include "common/error_details.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// From a worker's recovery until the router has asked it again.
constexpr absl::Duration kProbedAgain = absl::Milliseconds(1500);
// Of LandingTable, with something to spare: nothing is remembered for longer.
constexpr absl::Duration kTombstones = absl::Seconds(62);

}  // namespace

void Checker::Fail(const std::string& what) {
  if (failure_.ok()) failure_ = absl::InternalError(what);
}

void Checker::OnFault(const InjectedFault& fault) {
  if (!fault.row->silences) return;
  // What was on its way is heard a little later.
  system_->world().At(fault.begin + kNoticed + slowest_message_,
                      [this, fault, router = &system_->router()] { CheckNoticed(fault, router); });
}

void Checker::CheckNoticed(const InjectedFault& fault, const SimRouter* router) {
  const bool goes_on = system_->world().now() < fault.end || fault.row->kind == FaultKind::kCrash;
  if (!goes_on || router != &system_->router() || !router->alive()) return;
  // What another fault has held back on the way may be heard much later.
  for (const InjectedFault& other : faults_->injected()) {
    const bool on_the_way = other.worker() == fault.worker() || other.row->place == FaultPlace::kRouter;
    if (other.begin != fault.begin && on_the_way && other.end > fault.begin) return;
  }
  for (const auto& [key, leg] : router->legs()) {
    if (leg.worker != fault.worker() || leg.stream->opened_at() >= fault.begin) continue;
    // With the handoff committed the prefill leg's outcome does not matter.
    const CallPhase phase = system_->board().call(key.call).phase;
    if (key.leg == Leg::kPrefill && phase >= CallPhase::kFirstStep) continue;
    Fail(StrCat("call ", key.call, " still has a leg to ", leg.worker, ", silent since ",
                absl::FormatDuration(system_->world().now() - fault.begin), " (", fault.row->name, ")"));
  }
}

void Checker::OnCallEnded(CallId call, const std::vector<SimRouter::LegView>& legs) {
  for (const SimRouter::LegView& leg : legs) {
    if (leg.stream->server() == nullptr) continue;  // never arrived
    system_->world().After(kFreed + slowest_message_, [this, call, leg] { CheckFreed(call, leg); });
  }
}

void Checker::CheckFreed(CallId call, const SimRouter::LegView& leg) {
  const SimWorker& worker = system_->worker(leg.worker);
  if (&worker != leg.stream->server() || !worker.alive()) return;
  // Who could not be reached meanwhile has until the connection's end is noticed.
  const absl::Time reachable = faults_->DisturbedUntil(leg.worker) + kNoticed + kFreed + slowest_message_;
  if (system_->world().now() < reachable) {
    system_->world().At(reachable, [this, call, leg] { CheckFreed(call, leg); });
  } else if (worker.Holds(leg.transfer_id)) {
    Fail(StrCat("call ", call, " has ended and ", leg.worker, " still works on it"));
  }
}

absl::Status Checker::RunAndCheck() {
  RETURN_IF_ERROR(RunUntilAnswered());
  for (const auto& [id, call] : calls_) RETURN_IF_ERROR(CheckAnswer(id, call));
  SimWorld& world = system_->world();
  // Without faults, everything is free a second after the last answer.
  const absl::Time healed = faults_->QuietAfter();
  const absl::Time quiet = std::max(world.now(), healed == absl::InfinitePast() ? healed : healed + kNoticed);
  RETURN_IF_ERROR(system_->RunUntil(quiet + kFreed + slowest_message_));
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(system_->CheckQuiescent());
  system_->router().StopProbing();
  RETURN_IF_ERROR(system_->RunUntil(world.now() + kTombstones));
  RETURN_IF_ERROR(failure_);
  return system_->CheckForgotten();
}

absl::Status Checker::RunUntilAnswered() {
  SimWorld& world = system_->world();
  absl::Time submitted = world.now();
  for (const auto& [id, call] : calls_) submitted = std::max(submitted, call.spec.arrival);
  while (system_->open_calls() > 0) {
    const absl::Time limit = std::max(submitted, faults_->QuietAfter()) + kSettle;
    if (world.now() >= limit) {
      std::string open;
      for (const auto& [id, call] : calls_) {
        if (!system_->answers().contains(id) || !system_->answer(id).ended) {
          open += StrCat(" ", id, " (", CallPhaseName(system_->board().call(id).phase), ")");
        }
      }
      return absl::DeadlineExceededError(StrCat("calls that do not end:", open));
    }
    RETURN_IF_ERROR(system_->RunOne());
    RETURN_IF_ERROR(failure_);
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckAnswer(CallId id, const Call& call) const {
  const ClientAnswer& answer = system_->answer(id);
  const std::vector<TokenId> expected = system_->Expected(call.spec, id);
  const auto wrong = [id](const std::string& what) {
    return absl::InternalError(StrCat("call ", id, ": ", what));
  };
  const size_t got = answer.tokens.size();
  if (got > expected.size() || !std::equal(answer.tokens.begin(), answer.tokens.end(), expected.begin())) {
    return wrong("its tokens are not those of a run without faults");
  }
  for (uint32_t i = 0; i < answer.indexes.size(); ++i) {
    if (answer.indexes[i] != i) return wrong(StrCat("token ", i, " came as ", answer.indexes[i]));
  }
  if (answer.ended_at > call.spec.deadline) return wrong("it ended after its deadline");
  if (answer.status.ok()) return CheckWhole(answer, call, expected.size());
  if (Permitted(id, call, answer.status).empty()) {
    return wrong(StrCat("nothing permits its status, ", answer.status.ToString()));
  }
  return absl::OkStatus();
}

absl::Status Checker::CheckWhole(const ClientAnswer& answer, const Call& call, size_t expected) const {
  if (answer.tokens.size() != expected) {
    return absl::InternalError(StrCat(answer.tokens.size(), " tokens of ", expected, " and OK"));
  }
  if (answer.usage.completion_tokens() != expected ||
      answer.usage.prompt_tokens() != call.spec.prompt.size() || answer.usage.cached_tokens() != 0) {
    return absl::InternalError(StrCat("usage: ", answer.usage.ShortDebugString()));
  }
  return absl::OkStatus();
}

std::vector<const InjectedFault*> Checker::Under(CallId id) const {
  std::vector<const InjectedFault*> under;
  for (const InjectedFault& fault : faults_->injected()) {
    const FaultPlace place = fault.row->place;
    bool hit = place == FaultPlace::kCall && fault.call == id;
    if (place == FaultPlace::kRouter || place == FaultPlace::kClientLink) {
      const ClientAnswer& answer = system_->answer(id);
      hit = answer.ended_at >= fault.begin && answer.sent <= fault.end + kProbedAgain;
    }
    for (const AttemptView& attempt : system_->board().call(id).attempts) {
      const bool then = attempt.end >= fault.begin && attempt.begin <= fault.end + kProbedAgain;
      const bool prefill = system_->AddressOf(attempt.prefill) == fault.prefill;
      const bool decode = attempt.decode == fault.decode;
      if (place == FaultPlace::kPairLink) {
        hit = hit || (then && prefill && decode);
      } else if (!fault.worker().empty()) {
        hit = hit || (then && (fault.worker() == fault.prefill ? prefill : decode));
      }
    }
    if (hit) under.push_back(&fault);
  }
  return under;
}

bool Checker::EveryDecodeWorkerWasHit() const {
  std::set<std::string> hit;
  for (const InjectedFault& fault : faults_->injected()) {
    if (fault.worker() == fault.decode) hit.insert(fault.decode);
  }
  return hit.size() >= system_->options().decode_workers && faults_->injected().size() >= 2;
}

std::string Checker::Permitted(CallId id, const Call& call, const absl::Status& status) const {
  const std::string reason = ErrorReason(status);
  uint32_t lost_workers = 0;
  for (const InjectedFault* fault : Under(id)) {
    switch (fault->row->permits) {
      case Permits::kNothing:
        break;
      case Permits::kLostWorker:
        if (absl::IsUnavailable(status) && reason == "WORKER_LOST" && ++lost_workers == 2)
          return "two losses";
        break;
      case Permits::kLostRouter:
        if (absl::IsUnavailable(status) && reason.empty()) return "its connection was lost";
        break;
      case Permits::kDrainingRouter:
        if (absl::IsUnavailable(status) && (reason.empty() || reason == "DRAINING") &&
            system_->answer(id).tokens.empty())
          return "it came to a router that left";
        break;
      case Permits::kAnything:
        return "a hostile peer";
      case Permits::kCancelled:
        if (absl::IsCancelled(status)) return "it was cancelled";
        break;
      case Permits::kAborted:
        if (absl::IsAborted(status)) return "it was aborted";
        break;
      case Permits::kDeadlineExceeded:
        if (absl::IsDeadlineExceeded(status)) return "its deadline has passed";
        break;
      case Permits::kSlowReader:
        if (absl::IsResourceExhausted(status) && reason == "SLOW_READER") return "it did not read";
        break;
    }
  }
  if (reason == "NO_WORKER" && EveryDecodeWorkerWasHit()) return "no decode worker was left";
  const bool refused = absl::IsResourceExhausted(status) && GetRetryDelay(status).has_value();
  if (call.queue_is_small && refused && system_->answer(id).tokens.empty()) return "the queue was full";
  return "";
}

}  // namespace baton
