#include "router/pair_picker.h"

#include <algorithm>
#include <tuple>

namespace baton {
namespace {

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool Differs(const std::string& wanted, const std::string& has) { return !wanted.empty() && wanted != has; }

uint64_t ReservedTokens(const WorkerSnapshot& decode, const PairRequest& request) {
  if (decode.reserve_tokens == 0) return request.total_tokens;
  return std::min<uint64_t>(request.total_tokens,
                            uint64_t{request.prompt_tokens} + request.output_tokens + decode.reserve_tokens);
}

bool HasRoom(const WorkerSnapshot& decode, const PairRequest& request) {
  return !decode.fenced && decode.assigned_requests < decode.max_running &&
         decode.assigned_tokens + RoundUpToBlocks(ReservedTokens(decode, request), decode.block_tokens) <=
             decode.kv_capacity_tokens;
}

double Used(const WorkerSnapshot& worker) {
  return static_cast<double>(worker.assigned_tokens) / static_cast<double>(worker.kv_capacity_tokens);
}

// Lower is better.
auto DecodeScore(const WorkerSnapshot& worker, const PairRequest& request) {
  return std::make_tuple(Contains(request.suspects, worker.name),
                         Differs(request.decode_recipe, worker.decode_recipe), worker.assigned_requests,
                         Used(worker), worker.last_assigned);
}

auto PrefillScore(const WorkerSnapshot& worker, const std::string& decode, const PairRequest& request) {
  const bool suspect_pair = std::find(request.suspect_pairs.begin(), request.suspect_pairs.end(),
                                      std::make_pair(worker.name, decode)) != request.suspect_pairs.end();
  return std::make_tuple(Contains(request.suspects, worker.name) + suspect_pair,
                         Differs(request.prefill_recipe, worker.prefill_recipe), worker.assigned_tokens,
                         worker.assigned_requests, worker.last_assigned);
}

uint64_t DepthTokens(uint32_t prompt_tokens, const PickerOptions& options) {
  return std::min<uint64_t>(prompt_tokens, std::max<uint64_t>(1, options.prefill_depth_tokens / 4 * 3));
}

struct PrefillChoice {
  const WorkerSnapshot* best = nullptr;   // with room, and free of suspicion
  const WorkerSnapshot* first = nullptr;  // free of suspicion, busy or not: has room first
  bool any = false;                       // one serves
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
    if (std::get<0>(score) > 0) continue;
    if (choice.first == nullptr || worker.depth_tokens < choice.first->depth_tokens) choice.first = &worker;
    const bool idle = worker.assigned_tokens == 0;
    const uint64_t depth = worker.depth_tokens + DepthTokens(request.prompt_tokens, options);
    if (worker.fenced || (!idle && depth > options.prefill_depth_tokens)) continue;
    if (choice.best == nullptr || score < PrefillScore(*choice.best, decode.name, request))
      choice.best = &worker;
  }
  return choice;
}

Pair MakePair(const WorkerSnapshot& decode, const WorkerSnapshot* prefill, std::string reason) {
  Pair pair;
  pair.decode = decode.name;
  pair.fingerprint = decode.fingerprint;
  pair.decode_recipe = decode.decode_recipe;
  pair.path = prefill == nullptr ? v1::SERVING_PATH_AGGREGATED : v1::SERVING_PATH_DISAGGREGATED;
  pair.path_reason = std::move(reason);
  pair.prefill_recipe = prefill == nullptr ? decode.prefill_recipe : prefill->prefill_recipe;
  if (prefill != nullptr) pair.prefill = prefill->name;
  return pair;
}

// Decode workers that have room, the best first. Sets what is to be said when there is none.
std::vector<const WorkerSnapshot*> ChooseDecode(const std::vector<WorkerSnapshot>& workers,
                                                const PairRequest& request, PickResult& result) {
  std::vector<const WorkerSnapshot*> able;
  const WorkerSnapshot* first = nullptr;
  for (const WorkerSnapshot& worker : workers) {
    if (worker.role != v1::ROLE_DECODE || !worker.serving || Differs(request.fingerprint, worker.fingerprint))
      continue;
    result.largest_tokens = std::max(result.largest_tokens, worker.kv_capacity_tokens);
    if (result.outcome == PickResult::kNoWorker) result.outcome = PickResult::kTooLarge;
    if (RoundUpToBlocks(request.total_tokens, worker.block_tokens) > worker.kv_capacity_tokens) continue;
    result.outcome = PickResult::kWait;
    if (first == nullptr || Used(worker) < Used(*first)) first = &worker;
    if (HasRoom(worker, request)) able.push_back(&worker);
  }
  if (first != nullptr) result.awaited = first->name;
  std::sort(able.begin(), able.end(), [&](const WorkerSnapshot* a, const WorkerSnapshot* b) {
    return DecodeScore(*a, request) < DecodeScore(*b, request);
  });
  return able;
}

}  // namespace

uint64_t RoundUpToBlocks(uint64_t tokens, uint32_t block_tokens) {
  return (tokens + block_tokens - 1) / block_tokens * block_tokens;
}

PickResult PickPair(const std::vector<WorkerSnapshot>& workers, const PairRequest& request,
                    const PickerOptions& options) {
  PickResult result;
  const std::vector<const WorkerSnapshot*> able = ChooseDecode(workers, request, result);
  if (able.empty()) return result;
  const auto picked = [&](const WorkerSnapshot& decode, const WorkerSnapshot* prefill, std::string reason) {
    result.outcome = PickResult::kPicked;
    result.pair = MakePair(decode, prefill, std::move(reason));
    result.pair.reserved_tokens = ReservedTokens(decode, request);
    return result;
  };
  if (request.prompt_tokens < options.aggregate_below) return picked(*able.front(), nullptr, "short prompt");
  bool any = false;
  const WorkerSnapshot* busy = nullptr;
  for (const WorkerSnapshot* decode : able) {
    if (Contains(request.suspects, decode->name) != Contains(request.suspects, able.front()->name)) break;
    const PrefillChoice prefill = ChoosePrefill(workers, *decode, request, options);
    any = any || prefill.any;
    if (busy == nullptr) busy = prefill.first;
    if (prefill.best == nullptr) continue;
    picked(*decode, prefill.best, "default");
    result.pair.depth_tokens = DepthTokens(request.prompt_tokens, options);
    return result;
  }
  if (busy != nullptr) {
    result.awaited = busy->name;
    return result;
  }
  return picked(*able.front(), nullptr,
                any ? "no prefill worker can be relied on" : "no prefill worker serves");
}

}  // namespace baton
