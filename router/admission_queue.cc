#include "router/admission_queue.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/numbers.h"
#include "common/check.h"
#include "common/error_details.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr double kRateFadesSeconds = 10;   // what lies so far back counts 1/e
constexpr double kRateNeedsSeconds = 0.5;  // of serving while calls wait, before it is believed
constexpr absl::Duration kUnknownRetry = absl::Seconds(1);
constexpr absl::Duration kShortestRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(30);

absl::Status Refuse(const std::string& text, std::string_view reason, std::optional<absl::Duration> wait) {
  const absl::Duration retry = std::clamp(wait.value_or(kUnknownRetry), kShortestRetry, kLongestRetry);
  return WithRetryInfo(WithErrorInfo(absl::ResourceExhaustedError(text), reason), retry);
}

}  // namespace

absl::StatusOr<std::map<std::string, double>> ParseTenantWeights(const std::vector<std::string>& texts) {
  std::map<std::string, double> weights;
  for (const std::string& text : texts) {
    const size_t equals = text.rfind('=');
    double weight = 0;
    // Negated, so that NaN fails.
    if (equals == std::string::npos || !absl::SimpleAtod(text.substr(equals + 1), &weight) ||
        !(weight > 0 && weight <= 1000)) {
      return absl::InvalidArgumentError(
          StrCat("tenant weight \"", text, "\" is not name=weight, with a weight in (0, 1000]"));
    }
    weights[text.substr(0, equals)] = weight;
  }
  return weights;
}

const std::string& AdmissionQueue::PlaceOf(const std::string& tenant) const {
  static const std::string kShared;
  return tenants_.contains(tenant) || tenants_.size() < options_.max_tenants ? tenant : kShared;
}

double AdmissionQueue::WeightOf(const std::string& tenant) const {
  const auto it = options_.weights.find(tenant);
  return it == options_.weights.end() ? 1 : it->second;
}

AdmissionQueue::Due AdmissionQueue::DueOf(const QueuedCall& call) const {
  const absl::Duration patience = std::min(
      options_.patience_per_token * static_cast<double>(call.cost_tokens), options_.longest_patience);
  return {call.since + patience - options_.priority_step * call.priority, call.id};
}

absl::Status AdmissionQueue::Admit(const QueuedCall& call, absl::Duration longest_wait) const {
  const std::optional<absl::Duration> wait = EstimateWait(call);
  if (waiting_.size() >= options_.max_queued) {
    return Refuse(StrCat("the queue is full: ", options_.max_queued, " requests"), "QUEUE_FULL", wait);
  }
  const auto it = tenants_.find(PlaceOf(call.tenant));
  const size_t own = it == tenants_.end() ? 0 : it->second.calls.size();
  const size_t share = std::max<size_t>(1, static_cast<size_t>(options_.max_queued * options_.tenant_share));
  if (own >= share) {
    return Refuse(StrCat("this client's share of the queue is full: ", share, " requests"), "SHARE_FULL",
                  wait);
  }
  if (wait && *wait > longest_wait) {
    return Refuse(
        StrCat("the queue is too long: about ", absl::FormatDuration(absl::Trunc(*wait, absl::Seconds(1))),
               " to wait, at most ", absl::FormatDuration(absl::Trunc(longest_wait, absl::Milliseconds(1)))),
        "WAIT_TOO_LONG", wait);
  }
  return absl::OkStatus();
}

std::optional<absl::Duration> AdmissionQueue::EstimateWait(const QueuedCall& call) const {
  if (served_seconds_ < kRateNeedsSeconds) return std::nullopt;
  const std::string& place = PlaceOf(call.tenant);
  uint64_t ahead = 0;
  double weights = WeightOf(place);
  for (const auto& [name, tenant] : tenants_) {
    if (name == place) {
      const auto end = tenant.calls.lower_bound(DueOf(call));
      for (auto it = tenant.calls.begin(); it != end; ++it) ahead += it->second;
    } else if (!tenant.calls.empty()) {
      weights += tenant.weight;
    }
  }
  const double share = WeightOf(place) / weights;
  return absl::Seconds(static_cast<double>(ahead) * served_seconds_ / (served_tokens_ * share));
}

void AdmissionQueue::Push(const QueuedCall& call, absl::Time now) {
  BATON_CHECK(!Contains(call.id));
  if (waiting_.empty()) served_since_ = now;
  // Those that do not wait are remembered only while there is room for them.
  if (tenants_.size() >= options_.max_tenants && !tenants_.contains(call.tenant)) {
    std::erase_if(tenants_, [](const auto& tenant) { return tenant.second.calls.empty(); });
  }
  const std::string place = PlaceOf(call.tenant);
  Tenant& tenant = tenants_[place];
  tenant.weight = WeightOf(place);
  if (tenant.calls.empty()) tenant.start = std::max(virtual_, tenant.finish);
  const Waiting waiting{place, DueOf(call), call.cost_tokens, now};
  tenant.calls.emplace(waiting.due, call.cost_tokens);
  waiting_tokens_ += call.cost_tokens;
  waiting_.emplace(call.id, waiting);
}

void AdmissionQueue::PushAgain(CallId id, bool has_tokens, absl::Time arrival) {
  BATON_CHECK(!Contains(id));
  const auto place = std::make_tuple(!has_tokens, arrival, id);
  again_.insert(place);
  again_of_.emplace(id, place);
}

void AdmissionQueue::Take(CallId id, absl::Time now) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) {
    Erase(id);
    return;
  }
  const Waiting waiting = it->second;
  Tenant& tenant = tenants_.at(waiting.tenant);
  virtual_ = std::max(virtual_, tenant.start);
  tenant.finish = tenant.start + static_cast<double>(waiting.cost_tokens) / tenant.weight;
  tenant.start = tenant.finish;
  if (now > waiting.pushed) OnServed(waiting.cost_tokens, now);
  Remove(waiting, id);
}

void AdmissionQueue::Erase(CallId id) {
  if (const auto it = again_of_.find(id); it != again_of_.end()) {
    again_.erase(it->second);
    again_of_.erase(it);
  } else if (const auto found = waiting_.find(id); found != waiting_.end()) {
    const Waiting waiting = found->second;
    Remove(waiting, id);
  }
}

void AdmissionQueue::Remove(const Waiting& waiting, CallId id) {
  tenants_.at(waiting.tenant).calls.erase(waiting.due);
  waiting_tokens_ -= waiting.cost_tokens;
  waiting_.erase(id);
  if (waiting_.empty()) tenants_.clear();  // nobody waited for another: nothing is owed
}

void AdmissionQueue::OnServed(uint64_t tokens, absl::Time now) {
  const double seconds = absl::ToDoubleSeconds(now - served_since_);
  const double fade = std::exp(-seconds / kRateFadesSeconds);
  served_tokens_ = served_tokens_ * fade + static_cast<double>(tokens);
  served_seconds_ = served_seconds_ * fade + seconds;
  served_since_ = now;
}

AdmissionQueue::Round::Round(const AdmissionQueue* queue) : queue_(queue) {
  for (const auto& place : queue->again_) again_.push_back(std::get<2>(place));
}

std::optional<CallId> AdmissionQueue::Round::Next() {
  while (next_again_ < again_.size()) {
    const CallId id = again_[next_again_++];
    if (queue_->again_of_.contains(id)) return id;
  }
  const std::pair<const std::string, Tenant>* best = nullptr;
  Due candidate;
  for (const auto& entry : queue_->tenants_) {
    const Tenant& tenant = entry.second;
    const auto passed = passed_.find(entry.first);
    const auto it = passed == passed_.end() ? tenant.calls.begin() : tenant.calls.upper_bound(passed->second);
    if (it == tenant.calls.end()) continue;
    if (best != nullptr && std::tie(best->second.start, candidate) <= std::tie(tenant.start, it->first))
      continue;
    best = &entry;
    candidate = it->first;
  }
  if (best == nullptr) return std::nullopt;
  passed_[best->first] = candidate;
  return candidate.second;
}

absl::Status AdmissionQueue::CheckInvariants() const {
  uint64_t tokens = 0;
  size_t calls = 0;
  for (const auto& [name, tenant] : tenants_) {
    calls += tenant.calls.size();
    for (const auto& [due, cost] : tenant.calls) tokens += cost;
    if (!tenant.calls.empty() && tenant.start < tenant.finish) {
      return absl::InternalError("a tenant's next call starts before its latest has finished");
    }
  }
  if (calls != waiting_.size() || tokens != waiting_tokens_ || again_.size() != again_of_.size()) {
    return absl::InternalError("the queue's calls do not add up");
  }
  return tenants_.size() <= options_.max_tenants + 1
             ? absl::OkStatus()
             : absl::InternalError("more tenants than may be told apart");
}

}  // namespace baton
