#ifndef BATON_COMMON_METRIC_TABLE_H_
#define BATON_COMMON_METRIC_TABLE_H_

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace baton {

enum class MetricType { kCounter, kGauge, kHistogram };

// Seconds. The first four are there because a small model's step is shorter than the usual first bucket.
inline constexpr double kLatencyBuckets[] = {50e-6,  100e-6, 250e-6, 500e-6, 1e-3,   2.5e-3, 5e-3,  7.5e-3,
                                             10e-3,  15e-3,  20e-3,  25e-3,  30e-3,  40e-3,  50e-3, 75e-3,
                                             100e-3, 150e-3, 200e-3, 300e-3, 500e-3, 750e-3, 1.0,   2.5,
                                             5.0,    10.0,   20.0,   40.0,   80.0};
// Sequences in one step.
inline constexpr double kBatchBuckets[] = {1, 2, 4, 8, 16, 32, 64, 128, 256, 512};

// Every metric that Baton exports, once. The order is that of kMetricTable.
enum class Metric {
  kTimeToFirstToken,
  kInterTokenLatency,
  kTimePerOutputToken,
  kRequestDuration,
  kRequestQueue,
  kPrefill,
  kHandoff,
  kDecodeQueue,
  kRouterOverhead,
  kKvTransfer,
  kKvTransferBytes,
  kKvTransferFailures,
  kKvBlocks,
  kRequestsRunning,
  kRequestsWaiting,
  kWaitingTokens,
  kBatchSize,
  kPromptTokens,
  kGenerationTokens,
  kRecomputedTokens,
  kPreemptions,
  kLoopStalls,
  kRequests,
  kRecoveries,
  kRetriesHeld,
  kRecipeChanges,
  kCancels,
  kWorkers,
  kBuildInfo,
  kModelLoad,
};

struct MetricRow {
  Metric id;
  std::string_view name;
  MetricType type;
  std::string_view unit;
  std::span<const double> buckets;         // Histograms alone; upper bounds in `unit`.
  std::array<std::string_view, 2> labels;  // Those given by value at each use; empty ones do not exist.
  std::string_view help;

  constexpr size_t label_count() const { return labels[0].empty() ? 0 : labels[1].empty() ? 1 : 2; }
};

namespace metric_row {

// The forms of a row; labels default to none.
using MetricLabels = std::array<std::string_view, 2>;

constexpr MetricRow Latency(Metric id, std::string_view name, std::string_view help,
                            MetricLabels labels = {}) {
  return {id, name, MetricType::kHistogram, "seconds", kLatencyBuckets, labels, help};
}
constexpr MetricRow Counter(Metric id, std::string_view name, std::string_view unit, std::string_view help,
                            MetricLabels labels = {}) {
  return {id, name, MetricType::kCounter, unit, {}, labels, help};
}
constexpr MetricRow Gauge(Metric id, std::string_view name, std::string_view unit, std::string_view help,
                          MetricLabels labels = {}) {
  return {id, name, MetricType::kGauge, unit, {}, labels, help};
}

}  // namespace metric_row

// Every metric also carries the labels `role` and `model` of its process, unless its row has a label of that
// name.
inline constexpr MetricRow kMetricTable[] = {
    metric_row::Latency(
        Metric::kTimeToFirstToken, "baton_time_to_first_token_seconds",
        "From the request read by the router to the first token released to the client's stream (TTFT)."),
    metric_row::Latency(Metric::kInterTokenLatency, "baton_inter_token_latency_seconds",
                        "Gaps between consecutive tokens of an answer, at the router (ITL)."),
    metric_row::Latency(Metric::kTimePerOutputToken, "baton_time_per_output_token_seconds",
                        "(last token - first token) / (tokens - 1) of an answer of two tokens or more, at "
                        "the router (TPOT)."),
    metric_row::Latency(Metric::kRequestDuration, "baton_request_duration_seconds",
                        "From the request read by the router to its last token (E2E)."),
    metric_row::Latency(Metric::kRequestQueue, "baton_request_queue_seconds",
                        "Time in the router's queue, until a pair of workers took the request."),
    metric_row::Latency(Metric::kPrefill, "baton_prefill_seconds",
                        "Time in the steps that computed a prompt."),
    metric_row::Latency(Metric::kHandoff, "baton_handoff_seconds",
                        "From token 0 sampled by prefill to its KV cache complete and visible at decode."),
    metric_row::Latency(Metric::kDecodeQueue, "baton_decode_queue_seconds",
                        "From the KV cache complete at decode to the sequence's first step."),
    metric_row::Latency(Metric::kRouterOverhead, "baton_router_overhead_seconds",
                        "The router's own work within TTFT: tokenizing, and handling of token 0."),
    metric_row::Latency(Metric::kKvTransfer, "baton_kv_transfer_seconds",
                        "From the first KV piece offered to the commit acknowledged.", {"transport"}),
    metric_row::Counter(Metric::kKvTransferBytes, "baton_kv_transfer_bytes_total", "bytes", "KV bytes moved.",
                        {"transport"}),
    metric_row::Counter(Metric::kKvTransferFailures, "baton_kv_transfer_failures_total", "transfers",
                        "KV transfers that ended without a commit.", {"reason"}),
    metric_row::Gauge(Metric::kKvBlocks, "baton_kv_blocks", "blocks",
                      "KV blocks in each state; the states add up to the pools.", {"state"}),
    metric_row::Gauge(Metric::kRequestsRunning, "baton_requests_running", "requests",
                      "Requests being served."),
    metric_row::Gauge(Metric::kRequestsWaiting, "baton_requests_waiting", "requests",
                      "Requests in this process's queue."),
    metric_row::Gauge(Metric::kWaitingTokens, "baton_waiting_tokens", "tokens",
                      "Prompt tokens accepted and not yet computed."),
    {Metric::kBatchSize,
     "baton_batch_size",
     MetricType::kHistogram,
     "sequences",
     kBatchBuckets,
     {},
     "Sequences in a step."},
    metric_row::Counter(Metric::kPromptTokens, "baton_prompt_tokens_total", "tokens",
                        "Prompt tokens of answered requests, each request once."),
    metric_row::Counter(Metric::kGenerationTokens, "baton_generation_tokens_total", "tokens",
                        "Tokens sampled and accepted, each once."),
    metric_row::Counter(Metric::kRecomputedTokens, "baton_recomputed_tokens_total", "tokens",
                        "Tokens computed again, because an attempt was lost or a sequence was preempted."),
    metric_row::Counter(Metric::kPreemptions, "baton_preemptions_total", "preemptions",
                        "Times that a decoding sequence lost its KV blocks to one that ranks higher."),
    metric_row::Counter(Metric::kLoopStalls, "baton_loop_stalls_total", "stalls",
                        "Times that the worker's loop stood still for longer than --stall-timeout."),
    metric_row::Counter(Metric::kRequests, "baton_requests_total", "requests",
                        "Requests ended, by gRPC code; `finish` is empty unless the code is OK.",
                        {"code", "finish"}),
    metric_row::Counter(Metric::kRecoveries, "baton_recoveries_total", "recoveries",
                        "Attempts that were replaced by another.", {"reason"}),
    metric_row::Counter(
        Metric::kRetriesHeld, "baton_retries_held_total", "retries",
        "Times that a lost attempt was not replaced at once, for the router's retry budget was "
        "used up."),
    metric_row::Counter(Metric::kRecipeChanges, "baton_recipe_changes_total", "moves",
                        "Answers that went on at a worker of another numeric recipe."),
    metric_row::Counter(Metric::kCancels, "baton_cancels_total", "requests",
                        "Requests cancelled, by the phase they were in.", {"phase"}),
    metric_row::Gauge(Metric::kWorkers, "baton_workers", "workers",
                      "Workers that the router knows, by their role and state.", {"role", "state"}),
    metric_row::Gauge(Metric::kBuildInfo, "baton_build_info", "", "Always 1; the version is in the label.",
                      {"version"}),
    metric_row::Gauge(Metric::kModelLoad, "baton_model_load_seconds", "seconds",
                      "How long loading the model took."),
};

constexpr const MetricRow& RowOf(Metric id) { return kMetricTable[static_cast<size_t>(id)]; }

}  // namespace baton

#endif  // BATON_COMMON_METRIC_TABLE_H_
