#ifndef BATON_COMMON_OUTGOING_STREAM_H_
#define BATON_COMMON_OUTGOING_STREAM_H_

#include "absl/status/status.h"

namespace baton {

// The sending end of a stream of messages to one peer. No call blocks. Safe to use from any thread.
template <typename Message>
class OutgoingStream {
 public:
  virtual ~OutgoingStream() = default;

  // Queues a message. False when the reader has fallen too far behind to take it: the message is dropped, and
  // the owner is to Cut the stream. True, and without effect, once the stream is finished, cut or cancelled.
  virtual bool Write(Message message) = 0;

  // Ends the stream with `status` after what is queued. The first Finish or Cut counts.
  virtual void Finish(const absl::Status& status) = 0;

  // Ends it without what is queued; only a message on its way to the peer goes before `status`.
  virtual void Cut(const absl::Status& status) = 0;
};

}  // namespace baton

#endif  // BATON_COMMON_OUTGOING_STREAM_H_
