#ifndef BATON_PREFILL_SERVICE_PREFILL_OPTIONS_H_
#define BATON_PREFILL_SERVICE_PREFILL_OPTIONS_H_

#include <vector>

#include "common/option.h"
#include "common/options.h"
#include "engine/worker_options.h"
#include "prefill_service/prefill_scheduler.h"

namespace baton {

struct PrefillOptions {
  PrefillOptions();

  WorkerOptions worker;
  PrefillSchedulerOptions scheduler;
};

// For ParseOptions and the docs.
Program PrefillProgram();
std::vector<Option> DescribePrefill(PrefillOptions* options);

}  // namespace baton

#endif  // BATON_PREFILL_SERVICE_PREFILL_OPTIONS_H_
