#include "decode_service/decode_options.h"

#include <iterator>
#include <utility>

#include "common/host_port.h"
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

absl::Status CheckAdvertise(const DecodeOptions& options) {
  if (options.advertise.empty()) {
    const absl::StatusOr<HostPort> listen = HostPort::Parse(options.worker.server.listen);
    if (!listen.ok() || !listen->IsUnspecified()) return absl::OkStatus();
    return absl::InvalidArgumentError(StrCat("advertise: needed because listen is \"",
                                             options.worker.server.listen,
                                             "\", which is no address that prefill services can dial"));
  }
  const absl::StatusOr<HostPort> advertise = HostPort::Parse(options.advertise);
  if (!advertise.ok()) {
    return absl::InvalidArgumentError(StrCat("advertise: ", StdView(advertise.status().message())));
  }
  if (!advertise->IsUnspecified() && advertise->port != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      StrCat("advertise: \"", options.advertise, "\" is no address that prefill services can dial"));
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
      Option::Time("step-target", &s.step_target, {absl::Milliseconds(5), absl::Seconds(10)},
                   "Longest step; the token budget is cut to keep to it. A cancel may wait for one."),
      Option::Count("max-running", &s.max_running, {1, 4096}, "sequences",
                    "Sequences that are served at once; more are refused. The router keeps the queue."),
      Option::Count(
          "reserve-tokens", &s.reserve_tokens, {0, 1 << 24}, "tokens",
          "Tokens of its answer that a sequence has KV blocks for when it is taken; it then grows, and "
          "when blocks run out others are preempted. 0: max_tokens, and none is ever preempted."),
  };
  std::move(own.begin(), own.end(), std::back_inserter(options));
  return options;
}

}  // namespace baton
