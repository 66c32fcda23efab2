#include "client/recorded_stream.h"

#include <chrono>
#include <utility>

#include "common/grpc_status.h"

namespace baton {

RecordedStream::RecordedStream(const v1::GenerateRequest& request, absl::Time scheduled, const Clock* clock,
                               DoneFunction on_done)
    : clock_(clock), on_done_(std::move(on_done)), request_(request) {
  record_.start = scheduled;
}

void RecordedStream::Start(v1::Inference::Stub* stub, const v1::GenerateRequest& request,
                           absl::Time scheduled, absl::Duration timeout, const Clock* clock,
                           DoneFunction on_done) {
  auto* const stream =
      new RecordedStream(request, scheduled, clock, std::move(on_done));  // Deleted by OnDone.
  if (timeout != absl::InfiniteDuration()) {
    stream->context_.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(timeout));
  }
  stub->async()->GenerateStream(&stream->context_, &stream->request_, stream);
  stream->StartRead(&stream->message_);
  stream->StartCall();
}

void RecordedStream::OnReadDone(bool ok) {
  if (!ok) return;  // The status follows.
  const absl::Time now = clock_->Now();
  const uint32_t count = message_.count();
  if (count > 0) {
    if (!record_.first_token) record_.first_token = now;
    const absl::Time since = record_.last_token.value_or(now);
    const uint32_t gaps = record_.last_token ? count : count - 1;
    for (uint32_t i = 0; i < gaps; ++i) record_.gaps.push_back((now - since) / static_cast<double>(gaps));
    record_.last_token = now;
    record_.tokens += count;
  }
  if (message_.has_prompt()) record_.prompt_tokens = message_.prompt().prompt_tokens();
  if (message_.has_timings()) {
    const v1::Timings& timings = message_.timings();
    if (timings.has_ttft_ms()) record_.router_ttft_ms = timings.ttft_ms();
    if (timings.has_tpot_ms()) record_.router_tpot_ms = timings.tpot_ms();
    if (timings.has_handoff_ms()) record_.handoff_ms = timings.handoff_ms();
  }
  StartRead(&message_);
}

void RecordedStream::OnDone(const grpc::Status& status) {
  record_.end = clock_->Now();
  record_.status = FromGrpcStatus(status);
  // The call is gone before anybody is told, who might then end the channel under it.
  const RequestRecord record = std::move(record_);
  const DoneFunction on_done = std::move(on_done_);
  delete this;
  on_done(record);
}

}  // namespace baton
