#include "engine/worker_options.h"

#include "common/cpu_quota.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {

std::vector<Option> DescribeWorker(WorkerOptions* o) {
  return {
      Option::Text("model", &o->model, "path", "GGUF file of the model to serve."),
      Option::Text("listen", &o->server.listen, "host:port", "Where to serve gRPC; port 0 takes a free one."),
      Option::Text("metrics-listen", &o->metrics_listen, "host:port",
                   "Where to serve Prometheus metrics at /metrics; empty: nowhere."),
      Option::Switch("allow-plaintext", &o->server.allow_plaintext,
                     "Serve without encryption on an address that other machines can reach."),
      Option::Switch("reflection", &o->server.reflection, "Serve gRPC reflection, for grpcurl and ghz."),
      Option::Count("threads", &o->threads, {0, 1024}, "threads",
                    "Threads of computation; 0: what the CPU quota allows."),
      Option::Choice("kernels", &o->kernels, {"auto", "reference", "avx2", "avx512"},
                     "CPU kernels; auto takes the best that this processor runs."),
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
                   "Then: how long running work may take to finish."),
      Option::Choice("log-format", &o->log_format, {"text", "json"}, "Format of the log on standard error."),
      Option::Choice("log-level", &o->log_level, {"debug", "info", "warning", "error"},
                     "Least level that is logged."),
  };
}

absl::StatusOr<EngineOptions> MakeEngineOptions(const WorkerOptions& options, uint32_t max_step_tokens,
                                                uint32_t max_batch_rows) {
  if (options.model.empty()) return absl::InvalidArgumentError("model: name a GGUF file with --model");
  EngineOptions engine;
  engine.model_path = options.model;
  engine.threads = options.threads > 0 ? options.threads : DefaultThreads();
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

absl::StatusOr<LogOptions> MakeLogOptions(const WorkerOptions& options) {
  LogOptions log;
  ASSIGN_OR_RETURN(log.level, ParseLogLevel(options.log_level));
  ASSIGN_OR_RETURN(log.style, ParseLogStyle(options.log_format));
  return log;
}

}  // namespace baton
