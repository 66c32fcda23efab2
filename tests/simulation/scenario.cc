#include "tests/simulation/scenario.h"

#include <utility>
#include <vector>

namespace baton {
namespace {

constexpr absl::Duration kDeadline = absl::Seconds(60);  // of a call that is not about its deadline
constexpr uint32_t kMaxQueued = 1024;
constexpr uint32_t kMaxPrompt = 150;
constexpr uint32_t kMaxAnswer = 40;

// Short phases are missed more often, so they are aimed at more often.
constexpr CallPhase kAimedAt[] = {
    CallPhase::kQueued,      CallPhase::kQueued,      CallPhase::kReserving,   CallPhase::kReserving,
    CallPhase::kPrefilling,  CallPhase::kPrefilling,  CallPhase::kFirstLayers, CallPhase::kFirstLayers,
    CallPhase::kMidTransfer, CallPhase::kMidTransfer, CallPhase::kMidTransfer, CallPhase::kMidTransfer,
    CallPhase::kCommit,      CallPhase::kFirstStep,   CallPhase::kFirstStep,   CallPhase::kDecoding};

// Of what the faults are drawn from: the deadline cannot be aimed at a phase, so it gets more tries.
std::vector<const FaultRow*> Drawn() {
  std::vector<const FaultRow*> rows;
  for (const FaultRow& row : FaultTable()) {
    rows.insert(rows.end(), row.kind == FaultKind::kDeadline ? 6 : 1, &row);
  }
  return rows;
}

}  // namespace

Scenario::Scenario(uint64_t seed, bool trace, FaultCounts* counts)
    : random_(seed), system_(std::make_unique<SimulatedSystem>(DrawOptions(seed, trace))) {
  faults_ = std::make_unique<Faults>(system_.get(), [this, counts](const InjectedFault& fault) {
    counts->Add(fault);
    checker_->OnFault(fault);
  });
  const LinkDelays& delays = system_->options().network.delays;
  checker_ = std::make_unique<Checker>(system_.get(), faults_.get(), std::max(delays.max, delays.tail_max));
  const absl::Time start = system_->world().now() + absl::Milliseconds(600);
  const uint32_t calls = 1 + Below(6);
  for (uint32_t i = 0; i < calls; ++i) DrawCall(start);
  const uint32_t faults[] = {0, 1, 1, 2, 2, 3, 3, 4};
  for (uint32_t i = OneOf(faults); i > 0; --i) DrawFault();
  const bool queue_is_small = system_->options().router.router.admission.max_queued < kMaxQueued;
  for (const CallSpec& spec : specs_) {
    checker_->OnSubmitted(system_->Submit(spec.arrival, spec), spec, queue_is_small);
  }
}

SimulatedSystem::Options Scenario::DrawOptions(uint64_t seed, bool trace) {
  SimulatedSystem::Options options;
  options.seed = seed;
  options.trace = trace;
  const uint32_t prefill[] = {0, 1, 1, 1, 2, 2, 2, 3}, decode[] = {1, 2, 2, 3};
  options.prefill_workers = OneOf(prefill);
  options.decode_workers = OneOf(decode);
  options.network.delays.min = absl::Microseconds(10 + Below(100));
  options.network.delays.max = options.network.delays.min + absl::Microseconds(Below(4000));
  const double tails[] = {0, 0, 0.01, 0.05};
  options.network.delays.tail_chance = OneOf(tails);
  if (options.network.delays.tail_chance > 0) options.network.delays.tail_max = absl::Milliseconds(400);
  options.client_link = options.network.delays;
  options.pace.step_base = absl::Microseconds(200 + Below(2000));
  options.pace.step_row = absl::Microseconds(5 + Below(50));
  options.pace.bytes_per_second = 1e5 * static_cast<double>(1 << Below(12));
  options.pace.longest_hop = absl::Microseconds(Below(2) * Below(300));
  options.pace.loop_waits_for_step = Below(2) == 0;
  options.router.router.admission.max_queued = Below(8) == 0 ? 1 + Below(3) : kMaxQueued;
  options.router.router.picker.prefill_depth_tokens = 1 + Below(400);
  options.router.router.picker.aggregate_below = Below(8) == 0 ? 40 : 0;
  options.check_every = 32;
  DrawEngines(options);
  return options;
}

void Scenario::DrawEngines(SimulatedSystem::Options& options) {
  ScriptedEngine::Options& engine = options.prefill.engine;
  const uint32_t blocks[] = {8, 16, 32};
  engine.context_tokens = 256;
  engine.samples = true;
  engine.end_every = Below(2) * 20;
  options.decode.engine = engine;
  engine.block_tokens = OneOf(blocks);
  options.decode.engine.block_tokens = OneOf(blocks);
  // From hardly more than one call to more than there are.
  const uint64_t bytes[] = {80 << 10, 160 << 10, 640 << 10};
  engine.kv_bytes = OneOf(bytes);
  options.decode.engine.kv_bytes = OneOf(bytes);
  options.prefill.scheduler.chunk_tokens = 4 + Below(Below(2) == 0 ? 16 : 60);
  options.decode.scheduler.chunk_tokens = 4 + Below(60);
  const uint64_t least[] = {1, 1, 1, 2 << 10, 64 << 10}, most[] = {1 << 10, 8 << 10, 1 << 20};
  options.prefill.pieces = {.min_bytes = OneOf(least), .max_bytes = OneOf(most)};
  options.decode.receiver.max_bytes_outstanding = Below(2) == 0 ? 4 << 10 : 16 << 20;
}

void Scenario::DrawCall(absl::Time start) {
  CallSpec spec;
  const uint32_t prompt = 1 + Below(kMaxPrompt);
  for (uint32_t i = 0; i < prompt; ++i) spec.prompt.push_back(static_cast<TokenId>('a' + Below(26)));
  spec.max_tokens = Below(8) == 0 ? 1 : 1 + Below(kMaxAnswer);
  spec.stop_ids = {ByteTokenizer::kEnd};
  spec.sampling.set_temperature(Below(3) == 0 ? 0 : 1);
  if (Below(3) == 0) spec.sampling.set_presence_penalty(1);
  spec.arrival = start + absl::Microseconds(Below(60'000));
  spec.deadline = spec.arrival + kDeadline;
  specs_.push_back(std::move(spec));
}

void Scenario::DrawFault() {
  static const std::vector<const FaultRow*> rows = Drawn();
  Faults::Plan plan;
  plan.row = rows[Below(static_cast<uint32_t>(rows.size()))];
  const uint32_t victim = Below(static_cast<uint32_t>(specs_.size()));
  plan.call = victim + 1;
  plan.phase = OneOf(kAimedAt);
  const uint32_t within_us[] = {1, 1, 500, 5000, 50'000};
  plan.after = absl::Microseconds(Below(OneOf(within_us)));
  if (plan.row->kind == FaultKind::kDeadline) {
    CallSpec& spec = specs_[victim];
    if (spec.deadline < spec.arrival + kDeadline) return;
    plan.phase = CallPhase::kQueued;  // of the sending
    plan.after = absl::Microseconds(100 << Below(10)) + absl::Microseconds(Below(1000));
    spec.deadline = spec.arrival + plan.after;
  }
  faults_->Add(plan);
}

uint64_t Scenario::recoveries() const {
  uint64_t recoveries = 0;
  for (const auto& [id, call] : system_->board().calls()) {
    recoveries += call.attempts.size() - std::min<size_t>(1, call.attempts.size());
  }
  return recoveries;
}

uint64_t Scenario::completed() const {
  uint64_t completed = 0;
  for (const auto& [id, answer] : system_->answers()) completed += answer.status.ok();
  return completed;
}

}  // namespace baton
