#ifndef BATON_KV_TRANSFER_BACKENDS_GRPC_SPAN_CURSOR_H_
#define BATON_KV_TRANSFER_BACKENDS_GRPC_SPAN_CURSOR_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/device/device.h"

namespace baton {

// Walks a list of spans as if they were one. A value type.
class SpanCursor {
 public:
  explicit SpanCursor(std::vector<DeviceSpan> spans) : spans_(std::move(spans)) {}

  // The next bytes that lie together, `limit` at most. Not past the end.
  DeviceSpan Next(uint64_t limit) {
    const DeviceSpan& span = spans_[index_];
    const DeviceSpan part = span.subspan(offset_, std::min(limit, span.bytes - offset_));
    offset_ += part.bytes;
    if (offset_ == span.bytes) {
      ++index_;
      offset_ = 0;
    }
    return part;
  }

 private:
  std::vector<DeviceSpan> spans_;
  size_t index_ = 0;
  uint64_t offset_ = 0;  // within the span
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_GRPC_SPAN_CURSOR_H_
