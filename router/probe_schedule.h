#ifndef BATON_ROUTER_PROBE_SCHEDULE_H_
#define BATON_ROUTER_PROBE_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace baton {

// When each worker is asked next: after `interval` if it answered, twice as long with each failure in a row
// up to `longest`, at once when there is news of it. Never two questions to one worker at a time, and never
// none. Owned by WorkerWatch.
class ProbeSchedule {
 public:
  ProbeSchedule(absl::Duration interval, absl::Duration longest)
      : interval_(interval), longest_(std::max(interval, longest)) {}

  void Add(const std::string& worker, absl::Time now) { entries_.try_emplace(worker, Entry{now}); }
  void Remove(const std::string& worker) { entries_.erase(worker); }
  void Hurry(const std::string& worker, absl::Time now) {
    const auto it = entries_.find(worker);
    if (it != entries_.end()) it->second.due = std::min(it->second.due, now);
  }
  // The workers to ask now; each is answered by OnAnswer.
  std::vector<std::string> TakeDue(absl::Time now) {
    std::vector<std::string> due;
    for (auto& [worker, entry] : entries_) {
      if (entry.asked || now < entry.due) continue;
      entry.asked = true;
      entry.due = absl::InfiniteFuture();
      due.push_back(worker);
    }
    return due;
  }
  void OnAnswer(const std::string& worker, bool ok, absl::Time now) {
    const auto it = entries_.find(worker);
    if (it == entries_.end()) return;
    Entry& entry = it->second;
    entry.asked = false;
    const absl::Duration pause = interval_ * (1 << std::min(entry.failures, 10u));
    entry.failures = ok ? 0 : entry.failures + 1;
    // News that came in the meantime stands.
    entry.due = std::min(entry.due, now + (ok ? interval_ : std::min(pause, longest_)));
  }
  absl::Time next_timer() const {
    absl::Time next = absl::InfiniteFuture();
    for (const auto& [worker, entry] : entries_) {
      if (!entry.asked) next = std::min(next, entry.due);
    }
    return next;
  }

 private:
  struct Entry {
    absl::Time due;
    bool asked = false;
    uint32_t failures = 0;  // in a row
  };
  const absl::Duration interval_;
  const absl::Duration longest_;
  std::map<std::string, Entry> entries_;
};

}  // namespace baton

#endif  // BATON_ROUTER_PROBE_SCHEDULE_H_
