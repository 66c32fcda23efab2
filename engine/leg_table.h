#ifndef BATON_ENGINE_LEG_TABLE_H_
#define BATON_ENGINE_LEG_TABLE_H_

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/log.h"
#include "common/metrics.h"
#include "common/outgoing_stream.h"
#include "common/str_cat.h"
#include "engine/job.h"

namespace baton {

// The open legs of a worker: where their events go, and the one place where their ends are counted and
// logged. Used by one thread, the worker's loop.
template <typename Event>
class LegTable {
 public:
  // `metrics` outlives the table.
  explicit LegTable(Metrics* metrics) : metrics_(metrics) {}

  void Open(LegId leg, std::string request_id, std::shared_ptr<OutgoingStream<Event>> stream) {
    legs_.emplace(leg, Leg{std::move(request_id), std::move(stream)});
  }

  // False when the leg's reader had fallen too far behind: its stream was cut, the leg has ended and its
  // owner is to be told. A leg that is not open any more takes everything.
  bool Send(LegId leg, Event event) {
    const auto it = legs_.find(leg);
    if (it == legs_.end() || it->second.stream->Write(std::move(event))) return true;
    const absl::Status status = WithErrorInfo(
        absl::ResourceExhaustedError("the reader of this leg is too slow; its events do not fit the queue"),
        kReasonSlowReader);
    it->second.stream->Cut(status);
    Ended(it->second.request_id, status, "");
    legs_.erase(it);
    return false;
  }

  // `finish`, for the metrics, with an OK status: "stop" or "length", or empty.
  void Close(LegId leg, const absl::Status& status, std::string_view finish) {
    const auto it = legs_.find(leg);
    if (it == legs_.end()) return;
    it->second.stream->Finish(status);
    Ended(it->second.request_id, status, finish);
    legs_.erase(it);
  }

  // The peer closed the leg while its job was in `phase`. False when it had ended before.
  bool Closed(LegId leg, std::string_view phase) {
    const auto it = legs_.find(leg);
    if (it == legs_.end()) return false;
    metrics_->template Get<Metric::kCancels>(phase).Increment();
    Ended(it->second.request_id, absl::CancelledError(StrCat("closed by its caller while ", phase)), "");
    legs_.erase(it);
    return true;
  }

 private:
  struct Leg {
    std::string request_id;
    std::shared_ptr<OutgoingStream<Event>> stream;
  };

  void Ended(const std::string& request_id, const absl::Status& status, std::string_view finish) {
    const std::string code = absl::StatusCodeToString(status.code());
    metrics_->template Get<Metric::kRequests>(code, finish).Increment();
    if (status.ok()) return;
    // The text of a refused request may quote what it asked for.
    const bool quotes = status.code() == absl::StatusCode::kInvalidArgument;
    Log(quotes || absl::IsCancelled(status) ? LogLevel::kInfo : LogLevel::kWarning, "leg_failed",
        {{"request_id", request_id},
         {"code", code},
         {"reason", ErrorReason(status)},
         {"message", quotes ? absl::string_view() : status.message()}});
  }

  Metrics* const metrics_;
  std::unordered_map<LegId, Leg> legs_;
};

}  // namespace baton

#endif  // BATON_ENGINE_LEG_TABLE_H_
