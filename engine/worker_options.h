#ifndef BATON_ENGINE_WORKER_OPTIONS_H_
#define BATON_ENGINE_WORKER_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/credentials.h"
#include "common/drain_sequence.h"
#include "common/grpc_server.h"
#include "common/option.h"
#include "engine/load_engine.h"

namespace baton {

// The options that both kinds of workers have, beside those of their schedulers.
struct WorkerOptions {
  GrpcServerOptions server;  // `port` and `credentials` are filled in by WorkerProcess
  CredentialOptions credentials;
  std::string metrics_listen;      // host:port; empty: no metrics are served
  std::string model;               // a GGUF file
  uint32_t threads = 0;            // 0: what the cgroup's quota allows
  std::vector<std::string> cores;  // numbers, one for each thread; empty: threads are not pinned
  uint64_t weight_bytes = 0;       // most memory of packed weights; 0: no limit
  uint64_t kv_bytes = uint64_t{512} << 20;
  std::string kv_type = "f16";
  uint32_t block_tokens = 16;
  uint32_t context_tokens = 0;  // 0: the model's own
  std::string kernels = "auto";
  std::vector<std::string> transports = {"grpc"};
  DrainOptions drain = {.hand_back = absl::Seconds(1)};
  absl::Duration stall_timeout = absl::Seconds(2);
  std::string log_format = "text";
  std::string log_level = "info";
};

// Members and their --help, in the order of --help.
std::vector<Option> DescribeWorker(WorkerOptions* options);

// `max_step_tokens`: of one sequence in one step; `max_batch_rows`: of a whole step.
absl::StatusOr<EngineOptions> MakeEngineOptions(const WorkerOptions& options, uint32_t max_step_tokens,
                                                uint32_t max_batch_rows);

}  // namespace baton

#endif  // BATON_ENGINE_WORKER_OPTIONS_H_
