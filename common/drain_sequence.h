#ifndef BATON_COMMON_DRAIN_SEQUENCE_H_
#define BATON_COMMON_DRAIN_SEQUENCE_H_

#include <cstddef>

#include "absl/time/time.h"

namespace baton {

// The life of a serving process, in order and one way.
enum class ServingPhase {
  kServing,
  kNotServing,   // Health says NOT_SERVING; new work is still taken while load balancers notice.
  kRefusing,     // New work is refused; running work goes on.
  kHandingBack,  // Running work is given back to whoever asked for it, to be done elsewhere.
  kStopping,     // What still runs is ended.
};

struct DrainOptions {
  absl::Duration delay = absl::ZeroDuration();  // The length of kNotServing.
  absl::Duration timeout = absl::Seconds(30);   // The longest kRefusing.
  // The longest kHandingBack; zero: there is nobody to give work back to.
  absl::Duration hand_back = absl::ZeroDuration();
};

// When a process passes from one phase to the next:
//
//   kServing --requested--> kNotServing --delay over--> kRefusing --timeout--> kHandingBack --over-->
//   kStopping
//                                                           |                       |                    ^
//                                                           +---- no work left -----+--------------------+
//
// A hurry ends every wait but kHandingBack, which is short. A pure state machine: time and facts go in, a
// phase comes out.
class DrainSequence {
 public:
  struct Facts {
    bool requested = false;
    bool hurried = false;  // Counts only once requested.
    size_t running = 0;    // Pieces of work in progress.
  };

  explicit DrainSequence(const DrainOptions& options) : options_(options) {}

  // Moves on as far as `facts` and `now` allow and returns the phase reached. It passes through every phase
  // on the way, but reports only the last.
  ServingPhase Advance(absl::Time now, const Facts& facts);

  ServingPhase phase() const { return phase_; }

  // When to call Advance again if no fact changes before.
  absl::Time next_advance() const { return next_advance_; }

 private:
  const DrainOptions options_;
  ServingPhase phase_ = ServingPhase::kServing;
  absl::Time next_advance_ = absl::InfiniteFuture();
};

}  // namespace baton

#endif  // BATON_COMMON_DRAIN_SEQUENCE_H_
