#ifndef BATON_ROUTER_RETRY_BUDGET_H_
#define BATON_ROUTER_RETRY_BUDGET_H_

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace baton {

struct RetryBudgetOptions {
  double per_request = 0.2;  // a request that is admitted earns this many retries
  double per_second = 10;    // and so does time, so that an idle router can still retry
  double least_burst =
      64;  // retries that may be saved up, or one for each request in flight where these are more
};

// How many lost attempts a router may replace, over all requests: enough for any one worker to be lost with
// all that runs on it, too little for failures that feed on retries. A retry that is not to be had waits
// until it is. Owned by the Router.
class RetryBudget {
 public:
  explicit RetryBudget(const RetryBudgetOptions& options) : options_(options), saved_(options.least_burst) {}

  void OnRequest() { saved_ += options_.per_request; }
  bool Take(uint32_t in_flight, absl::Time now) {
    if (last_ != absl::Time()) saved_ += absl::ToDoubleSeconds(now - last_) * options_.per_second;
    last_ = now;
    saved_ = std::min(saved_, std::max(options_.least_burst, static_cast<double>(in_flight)));
    if (saved_ < 1) return false;
    saved_ -= 1;
    return true;
  }

 private:
  const RetryBudgetOptions options_;
  double saved_;
  absl::Time last_;  // of the latest Take
};

}  // namespace baton

#endif  // BATON_ROUTER_RETRY_BUDGET_H_
