#ifndef BATON_TESTS_SIMULATION_FAULT_TABLE_H_
#define BATON_TESTS_SIMULATION_FAULT_TABLE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace baton {

// What goes wrong.
enum class FaultKind : uint8_t {
  kCrash,       // the process dies, and starts again a little later
  kHang,        // SIGSTOP: it receives, answers nothing, and later goes on with what it knew, or dies
  kWedge,       // its loop is stuck, though the process answers pings and probes
  kSlow,        // every step takes many times as long
  kDrain,       // it finishes what it has, exits and starts again: one step of a rolling restart
  kScaleDown,   // it leaves the list of workers, before or after it has finished, and joins again
  kCut,         // every stream of the link breaks; those opened afterwards work
  kPartition,   // nothing passes in either direction for a while
  kHalfOpen,    // nothing passes in one direction for a while
  kSlowLink,    // messages take far longer for a while
  kReopen,      // the next opens on the link arrive twice
  kHostile,     // messages within a stream are repeated and reordered, which no transport does
  kCorrupt,     // the next KV bytes arrive changed
  kCancel,      // the client cancels
  kAbort,       // an operator aborts the call, twice
  kDeadline,    // the client's deadline passes
  kSlowReader,  // the client does not read for a while
};

// What it hits, as seen from a call: whom the call uses, or would use.
enum class FaultPlace : uint8_t {
  kPrefill,
  kDecode,
  kRouter,
  kClientLink,
  kPrefillLink,  // router to prefill
  kDecodeLink,   // router to decode
  kPairLink,     // prefill to decode
  kCall,
};

// What a client may see of it. Whatever is not permitted here must not be seen.
enum class Permits : uint8_t {
  kNothing,
  kLostWorker,      // nothing by itself; two of them under one call: UNAVAILABLE, WORKER_LOST; every decode
                    // worker hit: UNAVAILABLE, NO_WORKER
  kLostRouter,      // UNAVAILABLE without a reason: the client's connection is gone
  kDrainingRouter,  // before the first token: the same, or UNAVAILABLE, DRAINING
  kAnything,        // any status: a peer broke the protocol
  kCancelled,
  kAborted,
  kDeadlineExceeded,
  kSlowReader,  // RESOURCE_EXHAUSTED, SLOW_READER
};

struct FaultRow {
  FaultKind kind;
  FaultPlace place;
  Permits permits;
  const char* name;
  bool silences = false;  // the router hears no more of a worker: it must notice within 3 s
};

// Every fault that the simulation knows.
absl::Span<const FaultRow> FaultTable();

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_FAULT_TABLE_H_
