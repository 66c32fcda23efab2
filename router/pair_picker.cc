#include "router/pair_picker.h"

#include <algorithm>
#include <tuple>

namespace baton {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool HasRoom(const WorkerSnapshot& decode, uint32_t total_tokens) {
  return decode.assigned_requests < decode.max_running &&
         decode.assigned_tokens + RoundUpToBlocks(total_tokens, decode.block_tokens) <=
             decode.kv_capacity_tokens;
}

// Lower is better.
auto DecodeScore(const WorkerSnapshot& worker, const PairRequest& request) {
  const double used =
      static_cast<double>(worker.assigned_tokens) / static_cast<double>(worker.kv_capacity_tokens);
  return std::make_tuple(Contains(request.suspects, worker.name), worker.assigned_requests, used,
                         worker.last_assigned);
}

auto PrefillScore(const WorkerSnapshot& worker, const std::string& decode, const PairRequest& request) {
  const bool suspect_pair = std::find(request.suspect_pairs.begin(), request.suspect_pairs.end(),
                                      std::make_pair(worker.name, decode)) != request.suspect_pairs.end();
  return std::make_tuple(Contains(request.suspects, worker.name) + suspect_pair, worker.assigned_tokens,
                         worker.assigned_requests, worker.last_assigned);
}

struct PrefillChoice {
  const WorkerSnapshot* best = nullptr;  // with room
  bool any = false;                      // one serves, busy or not
  bool all_suspect = true;
};

PrefillChoice ChoosePrefill(const std::vector<WorkerSnapshot>& workers, const WorkerSnapshot& decode,
                            const PairRequest& request, const PickerOptions& options) {
  PrefillChoice choice;
  for (const WorkerSnapshot& worker : workers) {
    if (worker.role != v1::ROLE_PREFILL || !worker.serving || worker.fingerprint != decode.fingerprint)
      continue;
    if (request.prompt_tokens > worker.kv_capacity_tokens) continue;
    choice.any = true;
    const auto score = PrefillScore(worker, decode.name, request);
    choice.all_suspect = choice.all_suspect && std::get<0>(score) > 0;
    const bool idle = worker.assigned_tokens == 0;
    if (!idle && worker.assigned_tokens + request.prompt_tokens > options.prefill_depth_tokens) continue;
    if (choice.best == nullptr || score < PrefillScore(*choice.best, decode.name, request))
      choice.best = &worker;
  }
  return choice;
}

}  // namespace

uint64_t RoundUpToBlocks(uint64_t tokens, uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens * block_tokens;
}

PickResult PickPair(const std::vector<WorkerSnapshot>& workers, const PairRequest& request,
                    const PickerOptions& options) {
  PickResult result;
  const WorkerSnapshot* decode = nullptr;
  for (const WorkerSnapshot& worker : workers) {
    if (worker.role != v1::ROLE_DECODE || !worker.serving) continue;
    result.largest_tokens = std::max(result.largest_tokens, worker.kv_capacity_tokens);
    if (result.outcome == PickResult::kNoWorker) result.outcome = PickResult::kTooLarge;
    if (RoundUpToBlocks(request.total_tokens, worker.block_tokens) > worker.kv_capacity_tokens) continue;
    result.outcome = PickResult::kWait;
    if (!HasRoom(worker, request.total_tokens)) continue;
    if (decode == nullptr || DecodeScore(worker, request) < DecodeScore(*decode, request)) decode = &worker;
  }
  if (decode == nullptr) return result;

  Pair& pair = result.pair;
  pair.decode = decode->name;
  pair.path = v1::SERVING_PATH_AGGREGATED;
  if (request.prompt_tokens < options.aggregate_below) {
    pair.path_reason = "short prompt";
  } else {
    const PrefillChoice prefill = ChoosePrefill(workers, *decode, request, options);
    if (!prefill.any) {
      pair.path_reason = "no prefill worker serves";
    } else if (prefill.all_suspect) {
      pair.path_reason = "every prefill worker failed this request";
    } else if (prefill.best == nullptr) {
      return result;
    } else {
      pair.prefill = prefill.best->name;
      pair.path = v1::SERVING_PATH_DISAGGREGATED;
      pair.path_reason = "default";
    }
  }
  result.outcome = PickResult::kPicked;
  return result;
}

}  // namespace baton
