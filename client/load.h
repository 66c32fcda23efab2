#ifndef BATON_CLIENT_LOAD_H_
#define BATON_CLIENT_LOAD_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "baton/v1/inference.grpc.pb.h"
#include "client/request_record.h"
#include "common/clock.h"
#include "common/mutex.h"

namespace baton {

// How requests are sent.
struct LoadShape {
  uint32_t requests = 0;  // In all, warm-up not counted.
  uint32_t warmup = 0;    // Sent first, as a closed load of their own, and not recorded.
  uint32_t streams = 1;   // Closed load: so many in flight, each followed by the next.
  // Open load: sent at the times of a Poisson process whatever is in flight; `streams` then bounds the
  // warm-up.
  std::optional<double> requests_per_second;
  uint64_t seed = 1;                                  // Of the arrival times.
  absl::Duration timeout = absl::InfiniteDuration();  // Of one request.
};

struct LoadResult {
  absl::Time start;                    // Of the recorded part.
  absl::Time end;                      // When its last request had ended.
  std::vector<RequestRecord> records;  // In the order in which they ended.
};

// Sends load to one server and records what comes back.
class Load {
 public:
  using RequestSource = std::function<v1::GenerateRequest(uint32_t index)>;
  using OnProgress = std::function<void(uint32_t done, uint32_t failed)>;

  // Requests take the stubs in turn. `source(i)` makes the i-th request, warm-up first; `on_progress` is told
  // after every recorded request. Both are called by one thread at a time. `clock` outlives the load.
  Load(std::vector<std::unique_ptr<v1::Inference::Stub>> stubs, const LoadShape& shape, RequestSource source,
       OnProgress on_progress, const Clock* clock);

  // Blocks until every request has ended. Called once.
  LoadResult Run();

 private:
  void RunClosed(uint32_t first, uint32_t count, bool recorded);
  void RunOpen(uint32_t first, uint32_t count, absl::Time start);
  void Send(uint32_t index, absl::Time scheduled, bool recorded) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ended(const RequestRecord& record, bool recorded) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitUntilFewerThan(uint32_t in_flight) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::vector<std::unique_ptr<v1::Inference::Stub>> stubs_;
  const LoadShape shape_;
  const RequestSource source_;
  const OnProgress on_progress_;
  const Clock* const clock_;

  Mutex mutex_;
  CondVar ended_;
  uint32_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<RequestRecord> records_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace baton

#endif  // BATON_CLIENT_LOAD_H_
