#ifndef BATON_ROUTER_ADMISSION_QUEUE_H_
#define BATON_ROUTER_ADMISSION_QUEUE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "router/router_actions.h"

namespace baton {

struct AdmissionOptions {
  uint32_t max_queued = 1024;             // calls that wait for their first pair; more are refused
  double tenant_share = 0.5;              // of these, what one tenant may fill
  uint32_t max_tenants = 256;             // told apart at once; more share one place
  std::map<std::string, double> weights;  // of tenants; 1 for those that are not named
  // Within a tenant: how much later a call may be served for each of its tokens, and at most; how much
  // earlier for each step of its priority.
  absl::Duration patience_per_token = absl::Milliseconds(2);
  absl::Duration longest_patience = absl::Seconds(10);
  absl::Duration priority_step = absl::Seconds(2);
};

// "name=weight" each, weights in (0, 1000].
absl::StatusOr<std::map<std::string, double>> ParseTenantWeights(const std::vector<std::string>& texts);

// A call as the queue sees it.
struct QueuedCall {
  CallId id = 0;
  std::string tenant;        // empty: of nobody in particular
  int32_t priority = 0;      // the higher the earlier
  uint64_t cost_tokens = 0;  // prompt + max_tokens
  absl::Time since;          // of its arrival
};

// The calls that wait for a pair of workers, and whose turn it is. Owned by the Router; does nothing by
// itself.
//
//   first    calls that had a pair and lost it: those with tokens, then by arrival
//   then     the tenant whose turn it is by start-time fair queuing over tokens: tenants that wait are served
//   in
//            proportion to their weights, give or take the largest call of each, whatever they send
//   of it    the call that is due first: arrival + patience for its tokens - head start of its priority. So
//   short calls
//            overtake long ones and high priorities low ones by a bounded time only: nothing that waits is
//            overtaken for ever.
class AdmissionQueue {
 public:
  explicit AdmissionQueue(const AdmissionOptions& options) : options_(options) {}

  // OK, or RESOURCE_EXHAUSTED with RetryInfo: the queue or the tenant's share of it is full, or the call's
  // turn would come after `longest_wait`, going by the rate of late.
  absl::Status Admit(const QueuedCall& call, absl::Duration longest_wait) const;
  void Push(const QueuedCall& call, absl::Time now);
  // A call that had a pair before.
  void PushAgain(CallId id, bool has_tokens, absl::Time arrival);
  // It was given a pair: its tenant is charged, the first time.
  void Take(CallId id, absl::Time now);
  // It waits no longer.
  void Erase(CallId id);

  bool Contains(CallId id) const { return waiting_.contains(id) || again_of_.contains(id); }
  size_t size() const { return waiting_.size() + again_of_.size(); }
  uint64_t waiting_tokens() const { return waiting_tokens_; }
  // When such a call's turn would come; nothing while no rate is known.
  std::optional<absl::Duration> EstimateWait(const QueuedCall& call) const;

  // One pass over the calls in the order of their turns: those that are not taken are passed over. Calls may
  // be taken and erased during a pass, none pushed.
  class Round {
   public:
    explicit Round(const AdmissionQueue* queue);
    std::optional<CallId> Next();

   private:
    const AdmissionQueue* const queue_;
    std::vector<CallId> again_;
    size_t next_again_ = 0;
    std::map<std::string, std::pair<absl::Time, CallId>> passed_;  // the latest of each tenant
  };

  absl::Status CheckInvariants() const;

 private:
  using Due = std::pair<absl::Time, CallId>;
  struct Tenant {
    double weight = 1;
    double start = 0;               // of its next call, in virtual tokens
    double finish = 0;              // of its latest
    std::map<Due, uint64_t> calls;  // with their cost
  };
  struct Waiting {
    std::string tenant;
    Due due;
    uint64_t cost_tokens;
    absl::Time pushed;
  };

  const std::string& PlaceOf(const std::string& tenant) const;
  Due DueOf(const QueuedCall& call) const;
  double WeightOf(const std::string& tenant) const;
  void Remove(const Waiting& waiting, CallId id);
  void OnServed(uint64_t tokens, absl::Time now);

  const AdmissionOptions options_;
  std::map<std::string, Tenant>
      tenants_;  // those that wait, and those that were served more than others of late
  std::unordered_map<CallId, Waiting> waiting_;
  std::set<std::tuple<bool, absl::Time, CallId>> again_;  // (without tokens, arrival, call)
  std::unordered_map<CallId, std::tuple<bool, absl::Time, CallId>> again_of_;
  uint64_t waiting_tokens_ = 0;
  double virtual_ = 0;  // the start of the latest call served
  // Tokens served and the time it took while calls waited, both fading.
  double served_tokens_ = 0;
  double served_seconds_ = 0;
  absl::Time served_since_;
};

}  // namespace baton

#endif  // BATON_ROUTER_ADMISSION_QUEUE_H_
