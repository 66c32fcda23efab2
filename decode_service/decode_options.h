#ifndef BATON_DECODE_SERVICE_DECODE_OPTIONS_H_
#define BATON_DECODE_SERVICE_DECODE_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/option.h"
#include "common/options.h"
#include "decode_service/decode_scheduler.h"
#include "engine/worker_options.h"

namespace baton {

struct DecodeOptions {
  DecodeOptions();

  WorkerOptions worker;
  DecodeSchedulerOptions scheduler;
  std::string advertise;  // the address that prefill services dial; empty: where it listens
};

// For ParseOptions and the docs.
Program DecodeProgram();
std::vector<Option> DescribeDecode(DecodeOptions* options);

// INVALID_ARGUMENT when prefill services could not dial what landings would name: not host:port, or absent
// while the service listens on every address of the machine.
absl::Status CheckAdvertise(const DecodeOptions& options);

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_OPTIONS_H_
