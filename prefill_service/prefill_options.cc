#include "prefill_service/prefill_options.h"

#include <iterator>
#include <utility>

#include "common/ports.h"
#include "common/str_cat.h"

namespace baton {

PrefillOptions::PrefillOptions() {
  worker.server.listen = StrCat("127.0.0.1:", kPrefillPort);
  worker.metrics_listen = StrCat("127.0.0.1:", kPrefillMetricsPort);
}

Program PrefillProgram() {
  return {.name = "baton_prefill",
          .environment = "BATON_PREFILL",
          .summary = "Computes prompts and hands their KV cache to decode services."};
}

std::vector<Option> DescribePrefill(PrefillOptions* o) {
  PrefillSchedulerOptions& s = o->scheduler;
  std::vector<Option> options = DescribeWorker(&o->worker);
  std::vector<Option> own = {
      Option::Count("token-budget", &s.token_budget, {1, 1 << 16}, "tokens",
                    "Prompt tokens of one step, all prompts together."),
      Option::Count("chunk-tokens", &s.chunk_tokens, {1, 1 << 16}, "tokens",
                    "Tokens of one prompt in one step."),
      Option::Time("step-target", &s.step_target, {absl::Milliseconds(5), absl::Milliseconds(250)},
                   "Longest step; the token budget is cut to keep to it."),
      Option::Count("max-running", &s.max_running, {1, 4096}, "prompts", "Prompts that hold KV blocks."),
      Option::Count("max-waiting", &s.max_waiting, {1, 65536}, "prompts",
                    "Prompts that wait for blocks; more are refused. The router keeps the real queue."),
  };
  std::move(own.begin(), own.end(), std::back_inserter(options));
  return options;
}

}  // namespace baton
