#ifndef BATON_ROUTER_LEG_CLIENT_H_
#define BATON_ROUTER_LEG_CLIENT_H_

#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/grpc_status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"

namespace baton {

// One leg as the router holds it: a server stream that is read message by message. A shell: events go to the
// callbacks, on threads of gRPC, one at a time. What may wait unread in the router is bounded by the length
// of an answer.
//
// Lifetime: the call holds a reference until gRPC is done with it.
template <typename Event>
class LegClient final : public grpc::ClientReadReactor<Event> {
 public:
  struct Callbacks {
    std::function<void(Event event)> on_event;
    // The last call.
    std::function<void(absl::Status status)> on_closed;
  };

  // `open` starts the call on the stub: stub->async()->Decode(context, &request, reactor), and keeps the
  // request alive.
  static std::shared_ptr<LegClient> Open(absl::Duration time_left, Callbacks callbacks,
                                         const std::function<void(grpc::ClientContext*, LegClient*)>& open) {
    std::shared_ptr<LegClient> leg(new LegClient(std::move(callbacks)));
    leg->self_ = leg;
    leg->context_.set_deadline(absl::ToChronoTime(absl::Now() + time_left));
    open(&leg->context_, leg.get());
    leg->StartRead(&leg->event_);
    leg->StartCall();
    return leg;
  }

  // Ends the leg; on_closed still comes. Any thread.
  void Cancel() { context_.TryCancel(); }

 private:
  explicit LegClient(Callbacks callbacks) : callbacks_(std::move(callbacks)) {}

  void OnReadDone(bool ok) override {
    if (!ok) return;
    callbacks_.on_event(std::exchange(event_, Event()));
    this->StartRead(&event_);
  }

  void OnDone(const grpc::Status& status) override {
    // The call lets go of itself before anybody is told: it holds a channel, and the last channel of a
    // process must not go on a thread of gRPC, which would then wait for itself.
    const auto on_closed = std::move(callbacks_.on_closed);
    const absl::Status closed = FromGrpcStatus(status);
    self_.reset();
    on_closed(closed);
  }

  Callbacks callbacks_;
  std::shared_ptr<LegClient> self_;  // until OnDone
  grpc::ClientContext context_;
  Event event_;
};

}  // namespace baton

#endif  // BATON_ROUTER_LEG_CLIENT_H_
