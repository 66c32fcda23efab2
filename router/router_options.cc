#include "router/router_options.h"

#include <iterator>
#include <utility>

#include "common/grpc_limits.h"
#include "common/ports.h"
#include "common/str_cat.h"

namespace baton {

RouterProgramOptions::RouterProgramOptions() {
  server.listen = StrCat("127.0.0.1:", kRouterPort);
  metrics_listen = StrCat("127.0.0.1:", kRouterMetricsPort);
  watch.prefill = {StrCat("127.0.0.1:", kPrefillPort)};
  watch.decode = {StrCat("127.0.0.1:", kDecodePort)};
}

Program RouterProgram() {
  return {.name = "baton_router",
          .environment = "BATON_ROUTER",
          .summary =
              "Takes requests, assigns each to a prefill and a decode worker, streams the answer and "
              "measures it."};
}

std::vector<Option> DescribeRouter(RouterProgramOptions* o) {
  const absl::Duration day = absl::Hours(24);
  std::vector<Option> options = {
      Option::Text("listen", &o->server.listen, "host:port", "Where clients call; port 0 takes a free one."),
      Option::Text("metrics-listen", &o->metrics_listen, "host:port",
                   "Where /metrics is served; empty: nowhere."),
      Option::Text("model", &o->model, "file",
                   "The GGUF file that the workers serve: its tokenizer and chat template."),
      Option::List(
          "prefill", &o->watch.prefill, "host:port",
          "Prefill workers; a DNS name stands for each of its addresses. None: decode prefills by itself."),
      Option::List("decode", &o->watch.decode, "host:port",
                   "Decode workers; a DNS name stands for each of its addresses."),
      Option::Time("probe-interval", &o->watch.probe_interval, {absl::Milliseconds(50), absl::Minutes(1)},
                   "How often each worker is asked for its state and load."),
      Option::Time("resolve-interval", &o->watch.resolve_interval, {absl::Seconds(1), day},
                   "How often DNS names are resolved again."),
      Option::Count("max-queued", &o->router.admission.max_queued, {1, 1 << 20}, "requests",
                    "Requests that wait for a pair of workers; more are refused."),
      Option::Real(
          "tenant-share", &o->router.admission.tenant_share, {0.001, 1}, "of max-queued",
          "What one tenant may fill of it. A tenant is a client by its token, or by its x-tenant metadata."),
      Option::List(
          "tenant-weight", &o->tenant_weights, "name=weight",
          "Tenants that wait are served in proportion to their weights; 1 for those that are not named."),
      Option::Time("queue-limit", &o->router.call.queue_limit, {absl::Milliseconds(10), day},
                   "The longest wait for a pair."),
      Option::Time("worker-wait", &o->router.call.worker_wait, {absl::ZeroDuration(), day},
                   "The longest wait while no decode worker serves."),
      Option::Time("leg-silence", &o->router.call.leg.silence, {absl::Seconds(1), absl::Minutes(10)},
                   "A worker that says nothing on a leg for this long is lost."),
      Option::Time("step-stall", &o->router.call.leg.stall, {absl::Seconds(1), absl::Minutes(10)},
                   "A worker that speaks and takes no step for this long, while a request waits for one, is "
                   "lost to it."),
      Option::Count("prefill-depth", &o->router.picker.prefill_depth_tokens, {1, 1 << 24}, "tokens",
                    "A prefill worker is given prompts while it has fewer tokens than this to compute."),
      Option::Count("aggregate-below", &o->router.picker.aggregate_below, {0, 1 << 24}, "tokens",
                    "Prompts of fewer tokens are computed by the decode worker itself."),
      Option::Time("longest-request", &o->inference.longest_request, {absl::Seconds(1), day},
                   "The deadline of calls that bring none, or a later one."),
      Option::Time("drain-delay", &o->drain.delay, {absl::ZeroDuration(), day},
                   "After SIGTERM: how long new work is still taken while load balancers notice."),
      Option::Time("drain-timeout", &o->drain.timeout, {absl::ZeroDuration(), day},
                   "After that: how long running streams may take to finish."),
      Option::Switch("allow-plaintext", &o->server.allow_plaintext,
                     "Serve without TLS on an address that other machines can reach."),
      Option::Text("health-listen", &o->server.health_listen, "host:port",
                   "Where grpc.health.v1 alone is served, in plaintext, for probes; empty: nowhere."),
      Option::Count("max-streams-per-client", &o->inference.max_streams_per_client, {1, 1 << 20}, "streams",
                    "Requests of one client at once, by its name or else its address; more are refused."),
      Option::Bytes("max-prompt-bytes", &o->inference.limits.max_prompt_bytes, {1, kMaxMessageBytes},
                    "Text of one prompt or chat, tokenized or not."),
      Option::Switch("reflection", &o->server.reflection, "Serve gRPC reflection, for grpcurl and ghz."),
      Option::Choice("log-format", &o->log_format, {"text", "json"}, "How log lines look."),
      Option::Choice("log-level", &o->log_level, {"debug", "info", "warning", "error"},
                     "Lesser events are not logged."),
  };
  std::vector<Option> credentials = DescribeCredentials(&o->credentials, /*tokens=*/true);
  std::move(credentials.begin(), credentials.end(), std::back_inserter(options));
  return options;
}

}  // namespace baton
