#include "client/load.h"

#include <algorithm>
#include <utility>

#include "client/arrival_schedule.h"
#include "client/recorded_stream.h"
#include "common/check.h"

namespace baton {

Load::Load(std::vector<std::unique_ptr<v1::Inference::Stub>> stubs, const LoadShape& shape,
           RequestSource source, OnProgress on_progress, const Clock* clock)
    : stubs_(std::move(stubs)),
      shape_(shape),
      source_(std::move(source)),
      on_progress_(std::move(on_progress)),
      clock_(clock) {
  BATON_CHECK(!stubs_.empty() && shape_.streams > 0);
}

LoadResult Load::Run() {
  RunClosed(0, shape_.warmup, /*recorded=*/false);
  LoadResult result;
  result.start = clock_->Now();
  if (shape_.requests_per_second) {
    RunOpen(shape_.warmup, shape_.requests, result.start);
  } else {
    RunClosed(shape_.warmup, shape_.requests, /*recorded=*/true);
  }
  result.end = clock_->Now();
  MutexLock lock(&mutex_);
  result.records = std::move(records_);
  return result;
}

void Load::RunClosed(uint32_t first, uint32_t count, bool recorded) {
  for (uint32_t i = 0; i < count; ++i) {
    WaitUntilFewerThan(shape_.streams);
    Send(first + i, clock_->Now(), recorded);
  }
  WaitUntilFewerThan(1);
}

void Load::RunOpen(uint32_t first, uint32_t count, absl::Time start) {
  ArrivalSchedule schedule(*shape_.requests_per_second, shape_.seed);
  for (uint32_t i = 0; i < count; ++i) {
    const absl::Time due = start + schedule.Next();
    {
      MutexLock lock(&mutex_);
      for (absl::Duration left = due - clock_->Now(); left > absl::ZeroDuration();
           left = due - clock_->Now()) {
        ended_.WaitFor(&mutex_, left);
      }
    }
    Send(first + i, due, /*recorded=*/true);
  }
  WaitUntilFewerThan(1);
}

void Load::Send(uint32_t index, absl::Time scheduled, bool recorded) {
  {
    MutexLock lock(&mutex_);
    ++in_flight_;
  }
  RecordedStream::Start(stubs_[index % stubs_.size()].get(), source_(index), scheduled, shape_.timeout,
                        clock_, [this, recorded](const RequestRecord& record) { Ended(record, recorded); });
}

void Load::Ended(const RequestRecord& record, bool recorded) {
  MutexLock lock(&mutex_);
  if (recorded) {
    failed_ += record.status.ok() ? 0 : 1;
    records_.push_back(record);
    on_progress_(static_cast<uint32_t>(records_.size()), failed_);
  }
  --in_flight_;
  ended_.SignalAll();  // Under the mutex: Run may return, and this object end, as soon as it is let go.
}

void Load::WaitUntilFewerThan(uint32_t in_flight) {
  MutexLock lock(&mutex_);
  while (in_flight_ >= in_flight) ended_.Wait(&mutex_);
}

}  // namespace baton
