#ifndef BATON_CLIENT_BENCH_COMMAND_H_
#define BATON_CLIENT_BENCH_COMMAND_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/connection_options.h"
#include "client/request_options.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct BenchOptions {
  ConnectionOptions connection;
  RequestOptions request;
  uint32_t streams = 8;
  double rate = 0;  // Requests per second of an open load; 0: a closed one.
  uint32_t requests = 100;
  uint32_t warmup = 2;
  uint32_t connections = 2;
  uint64_t load_seed = 1;  // Of arrivals and synthetic prompts.
  std::string prompts;     // A file; empty: synthetic.
  uint32_t input_tokens = 128;
  double slo_ttft_ms = 0;  // 0: none.
  double slo_tpot_ms = 0;
  std::string output = "text";

  // A load that can be compared: greedy, and of full length.
  BenchOptions();
};

Program BenchProgram();
std::vector<Option> Describe(BenchOptions* options);

// `baton bench`: sends the load, shows a progress bar on `err` where that is a terminal, and writes the
// report to `out`. An error when no request ended well.
absl::Status RunBench(const BenchOptions& options, std::FILE* out, std::FILE* err);

}  // namespace baton

#endif  // BATON_CLIENT_BENCH_COMMAND_H_
