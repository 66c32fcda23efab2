#include "decode_service/decode_options.h"

#include <iterator>
#include <utility>

#include "common/ports.h"
#include "common/str_cat.h"

namespace baton {

DecodeOptions::DecodeOptions() {
  worker.server.listen = StrCat("127.0.0.1:", kDecodePort);
  worker.metrics_listen = StrCat("127.0.0.1:", kDecodeMetricsPort);
}

Program DecodeProgram() {
  return {
      .name = "baton_decode",
      .environment = "BATON_DECODE",
      .summary =
          "Takes the KV cache of prompts from prefill services and produces the tokens of their answers."};
}

std::vector<Option> DescribeDecode(DecodeOptions* o) {
  DecodeSchedulerOptions& s = o->scheduler;
  std::vector<Option> options = DescribeWorker(&o->worker);
  std::vector<Option> own = {
      Option::Text("advertise", &o->advertise, "host:port",
                   "The address that prefill services dial; empty: where this one listens."),
      Option::Count("token-budget", &s.token_budget, {1, 1 << 16}, "tokens",
                    "Tokens of one step, all sequences together; each sequence gets one in any case."),
      Option::Count("chunk-tokens", &s.chunk_tokens, {1, 1 << 16}, "tokens",
                    "Tokens of one sequence in one step."),
      Option::Time("step-target", &s.step_target, {absl::Milliseconds(5), absl::Milliseconds(250)},
                   "Longest step; the token budget is cut to keep to it."),
      Option::Count("max-running", &s.max_running, {1, 4096}, "sequences",
                    "Sequences that hold KV blocks; more are refused. The router keeps the queue."),
  };
  std::move(own.begin(), own.end(), std::back_inserter(options));
  return options;
}

}  // namespace baton
