#include "engine/worker_options.h"

#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "common/cpu_quota.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "engine/ops/cpu/kernel_levels.h"

namespace baton {

std::vector<Option> DescribeWorker(WorkerOptions* o) {
  std::vector<Option> options = {
      Option::Text("model", &o->model, "path", "GGUF file of the model to serve."),
      Option::Text("listen", &o->server.listen, "host:port", "Where to serve gRPC; port 0 takes a free one."),
      Option::Text("metrics-listen", &o->metrics_listen, "host:port",
                   "Where to serve Prometheus metrics at /metrics; empty: nowhere."),
      Option::Switch("allow-plaintext", &o->server.allow_plaintext,
                     "Serve without TLS on an address that other machines can reach."),
      Option::Text("health-listen", &o->server.health_listen, "host:port",
                   "Where to serve grpc.health.v1 alone, in plaintext, for probes; empty: nowhere."),
      Option::Switch("reflection", &o->server.reflection, "Serve gRPC reflection, for grpcurl and ghz."),
      Option::Count("threads", &o->threads, {0, 1024}, "threads",
                    "Threads of computation; 0: what the CPU quota allows."),
      Option::List("cores", &o->cores, "numbers",
                   "Processor cores that these threads keep to, one for each; empty: they are not pinned."),
      Option::Choice("kernels", &o->kernels, KernelChoices(),
                     "CPU kernels; auto takes the best that this processor runs."),
      Option::Bytes("weight-memory", &o->weight_bytes, {0, uint64_t{1} << 50},
                    "Most memory that weights may take once they are packed for the kernels; 0: no limit."),
      Option::Bytes("kv-memory", &o->kv_bytes, {1 << 16, uint64_t{1} << 50}, "Size of the KV pools."),
      Option::Choice("kv-type", &o->kv_type, {"f32", "f16", "bf16"},
                     "Element type of the KV cache; workers that exchange KV have the same."),
      Option::Count("block-tokens", &o->block_tokens, {1, kMaxBlockTokens}, "tokens",
                    "Tokens of one KV block, a power of two."),
      Option::Count("context-tokens", &o->context_tokens, {0, 1 << 24}, "tokens",
                    "Longest prompt and answer together; 0: the model's own limit."),
      Option::List("transports", &o->transports, "names", "KV transports, preferred first."),
      Option::Time("drain-delay", &o->drain.delay, {absl::ZeroDuration(), absl::Hours(1)},
                   "After SIGTERM: how long new work is still taken while load balancers notice."),
      Option::Time("drain-timeout", &o->drain.timeout, {absl::ZeroDuration(), absl::Hours(24)},
                   "Then: how long running work may take to finish; what is left is moved to other workers."),
      Option::Time(
          "stall-timeout", &o->stall_timeout, {absl::Milliseconds(100), absl::Hours(1)},
          "A loop that stands still for longer, or for four step targets, is reported as NOT_SERVING."),
      Option::Choice("log-format", &o->log_format, {"text", "json"}, "Format of the log on standard error."),
      Option::Choice("log-level", &o->log_level, {"debug", "info", "warning", "error"},
                     "Least level that is logged."),
  };
  std::vector<Option> credentials = DescribeCredentials(&o->credentials, /*tokens=*/false);
  std::move(credentials.begin(), credentials.end(), std::back_inserter(options));
  return options;
}

absl::StatusOr<EngineOptions> MakeEngineOptions(const WorkerOptions& options, uint32_t max_step_tokens,
                                                uint32_t max_batch_rows) {
  if (options.model.empty()) return absl::InvalidArgumentError("model: name a GGUF file with --model");
  EngineOptions engine;
  engine.model_path = options.model;
  engine.threads = options.threads > 0 ? options.threads : DefaultThreads();
  for (const std::string& text : options.cores) {
    if (!absl::SimpleAtoi(text, &engine.cores.emplace_back())) {
      return absl::InvalidArgumentError(StrCat("cores: \"", text, "\" is not the number of a core"));
    }
  }
  engine.weight_bytes = options.weight_bytes;
  engine.context_tokens = options.context_tokens;
  engine.kv_bytes = options.kv_bytes;
  engine.block_tokens = options.block_tokens;
  engine.max_step_tokens = max_step_tokens;
  engine.max_batch_rows = max_batch_rows;
  engine.kernels = options.kernels;
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16}) {
    if (options.kv_type == KvTypeName(type)) {
      engine.kv_type = type;
      return engine;
    }
  }
  return absl::InvalidArgumentError(StrCat("kv-type: \"", options.kv_type, "\" is none of f32, f16, bf16"));
}

}  // namespace baton
