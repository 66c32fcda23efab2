#include "tests/simulation/fault_table.h"

namespace baton {

absl::Span<const FaultRow> FaultTable() {
  using K = FaultKind;
  using P = FaultPlace;
  using S = Permits;
  static constexpr FaultRow kRows[] = {
      {K::kCrash, P::kPrefill, S::kLostWorker, "prefill crashes", true},
      {K::kCrash, P::kDecode, S::kLostWorker, "decode crashes", true},
      {K::kCrash, P::kRouter, S::kLostRouter, "the router crashes"},
      {K::kHang, P::kRouter, S::kLostRouter, "the router hangs"},
      {K::kDrain, P::kRouter, S::kDrainingRouter, "the router drains"},
      {K::kHang, P::kPrefill, S::kLostWorker, "prefill hangs", true},
      {K::kHang, P::kDecode, S::kLostWorker, "decode hangs", true},
      {K::kWedge, P::kPrefill, S::kLostWorker, "prefill's loop is stuck", true},
      {K::kWedge, P::kDecode, S::kLostWorker, "decode's loop is stuck", true},
      {K::kSlow, P::kPrefill, S::kNothing, "prefill is slow"},
      {K::kSlow, P::kDecode, S::kNothing, "decode is slow"},
      {K::kDrain, P::kPrefill, S::kNothing, "prefill drains"},
      {K::kDrain, P::kDecode, S::kNothing, "decode drains"},
      {K::kScaleDown, P::kPrefill, S::kNothing, "prefill leaves"},
      {K::kScaleDown, P::kDecode, S::kNothing, "decode leaves"},
      {K::kCut, P::kClientLink, S::kLostRouter, "client-router is cut"},
      {K::kCut, P::kPrefillLink, S::kLostWorker, "router-prefill is cut"},
      {K::kCut, P::kDecodeLink, S::kLostWorker, "router-decode is cut"},
      {K::kCut, P::kPairLink, S::kNothing, "prefill-decode is cut"},
      {K::kPartition, P::kClientLink, S::kLostRouter, "client-router is partitioned"},
      {K::kPartition, P::kPrefillLink, S::kLostWorker, "router-prefill is partitioned", true},
      {K::kPartition, P::kDecodeLink, S::kLostWorker, "router-decode is partitioned", true},
      {K::kPartition, P::kPairLink, S::kNothing, "prefill-decode is partitioned"},
      {K::kHalfOpen, P::kClientLink, S::kLostRouter, "client-router is half open"},
      {K::kHalfOpen, P::kPrefillLink, S::kLostWorker, "router-prefill is half open", true},
      {K::kHalfOpen, P::kDecodeLink, S::kLostWorker, "router-decode is half open", true},
      {K::kHalfOpen, P::kPairLink, S::kNothing, "prefill-decode is half open"},
      {K::kSlowLink, P::kClientLink, S::kNothing, "client-router is slow"},
      {K::kSlowLink, P::kPrefillLink, S::kNothing, "router-prefill is slow"},
      {K::kSlowLink, P::kDecodeLink, S::kNothing, "router-decode is slow"},
      {K::kSlowLink, P::kPairLink, S::kNothing, "prefill-decode is slow"},
      {K::kReopen, P::kPrefillLink, S::kNothing, "router-prefill opens twice"},
      {K::kReopen, P::kDecodeLink, S::kNothing, "router-decode opens twice"},
      {K::kReopen, P::kPairLink, S::kNothing, "prefill-decode opens twice"},
      {K::kHostile, P::kPrefillLink, S::kAnything, "router-prefill is hostile"},
      {K::kHostile, P::kDecodeLink, S::kAnything, "router-decode is hostile"},
      {K::kHostile, P::kPairLink, S::kAnything, "prefill-decode is hostile"},
      {K::kCorrupt, P::kPairLink, S::kNothing, "KV bytes change"},
      {K::kCancel, P::kCall, S::kCancelled, "the client cancels"},
      {K::kAbort, P::kCall, S::kAborted, "an operator aborts"},
      {K::kDeadline, P::kCall, S::kDeadlineExceeded, "the deadline passes"},
      {K::kSlowReader, P::kCall, S::kSlowReader, "the client does not read"},
  };
  return kRows;
}

}  // namespace baton
