#include "tests/simulation/simulated_system.h"

#include <utility>

#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

absl::Status Of(const std::string& who, const absl::Status& status) {
  return status.ok() ? status : absl::InternalError(StrCat(who, ": ", status.message()));
}

}  // namespace

v1::Role RoleOfAddress(const std::string& address) {
  return address[0] == 'p' ? v1::ROLE_PREFILL : v1::ROLE_DECODE;
}

SimulatedSystem::SimulatedSystem(const Options& options)
    : options_(options),
      world_(options.seed, options.trace),
      network_(&world_, options.network),
      parts_{&world_, &network_, &board_},
      client_(&world_, &network_, &board_) {
  network_.SetDelays(kClientAddress, kRouterAddress, options.client_link);
  for (uint32_t i = 0; i < options.prefill_workers; ++i) StartWorker(StrCat("prefill-", i));
  for (uint32_t i = 0; i < options.decode_workers; ++i) StartWorker(StrCat("decode-", i));
  RestartRouter();
}

SimulatedSystem::~SimulatedSystem() {
  // What waits on their threads may hold blocks of their pools.
  for (const auto& [address, worker] : workers_) worker->Kill();
}

void SimulatedSystem::StartWorker(const std::string& address) {
  std::unique_ptr<SimWorker>& worker = workers_[address];
  const bool known = worker != nullptr;
  if (known) {
    worker->Kill();
    ended_.push_back(std::move(worker));
  }
  const std::string instance = StrCat("instance-", ++instances_, "-of-", address);
  addresses_[instance] = address;
  if (RoleOfAddress(address) == v1::ROLE_PREFILL) {
    worker = std::make_unique<SimPrefill>(parts_, address, instance, options_.pace, options_.prefill);
  } else {
    worker = std::make_unique<SimDecode>(parts_, address, instance, options_.pace, options_.decode);
  }
  network_.Listen(worker.get());
  if (router_ != nullptr) router_->AddWorker(address, RoleOfAddress(address));
}

void SimulatedSystem::RestartRouter() {
  if (router_ != nullptr) {
    router_->Kill();
    ended_.push_back(std::move(router_));
  }
  router_ = std::make_unique<SimRouter>(parts_, StrCat("router-", ++instances_), options_.router, &tokenizer_,
                                        &client_);
  network_.Listen(router_.get());
  for (const auto& [address, worker] : workers_) router_->AddWorker(address, RoleOfAddress(address));
}

CallId SimulatedSystem::Submit(absl::Time when, CallSpec spec) {
  const CallId id = ++submitted_;
  if (spec.deadline == absl::Time()) spec.deadline = when + absl::Minutes(10);
  world_.At(when, [this, id, spec = std::move(spec)] { client_.Submit(id, spec); });
  return id;
}

void SimulatedSystem::CancelAt(absl::Time when, CallId call) {
  world_.At(when, [this, call] { client_.Cancel(call); });
}

void SimulatedSystem::KillAt(absl::Time when, const std::string& worker) {
  world_.At(when, [this, worker] { workers_.at(worker)->Kill(); });
}

void SimulatedSystem::RestartAt(absl::Time when, const std::string& worker) {
  world_.At(when, [this, worker] { StartWorker(worker); });
}

std::vector<std::string> SimulatedSystem::worker_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [address, worker] : workers_) addresses.push_back(address);
  return addresses;
}

std::string SimulatedSystem::AddressOf(const std::string& instance_id) const {
  const auto it = addresses_.find(instance_id);
  return it == addresses_.end() ? "" : it->second;
}

bool SimulatedSystem::Done() const {
  if (open_calls() > 0 || router_->router().calls() > 0) return false;
  for (const auto& [address, worker] : workers_) {
    if (worker->alive() && !worker->Idle()) return false;
  }
  return true;
}

absl::Status SimulatedSystem::RunOne() {
  if (!world_.RunOne()) return absl::InternalError("nothing happens any more");
  return ++events_ % options_.check_every == 0 ? CheckInvariants() : absl::OkStatus();
}

absl::Status SimulatedSystem::Run(absl::Duration until) {
  const absl::Time end = world_.now() + until;
  while (!Done()) {
    if (world_.next_event() > end) {
      return absl::DeadlineExceededError(StrCat(open_calls(), " calls are still open"));
    }
    RETURN_IF_ERROR(RunOne());
  }
  return CheckInvariants();
}

absl::Status SimulatedSystem::RunUntil(absl::Time when) {
  while (world_.next_event() <= when) RETURN_IF_ERROR(RunOne());
  return CheckInvariants();
}

absl::Status SimulatedSystem::CheckInvariants() const {
  for (const auto& [address, worker] : workers_) {
    if (worker->alive()) RETURN_IF_ERROR(Of(address, worker->CheckInvariants()));
  }
  return Of(kRouterAddress, router_->CheckInvariants());
}

absl::Status SimulatedSystem::CheckQuiescent() const {
  for (const auto& [address, worker] : workers_) {
    if (!worker->alive()) continue;
    if (!worker->Idle()) return absl::InternalError(StrCat(address, " still holds something"));
    RETURN_IF_ERROR(Of(address, worker->pools().CheckAllFree()));
  }
  if (!router_->legs().empty()) return absl::InternalError("the router still has legs");
  const v1::ListWorkersResponse list = router_->router().workers().List();
  for (const v1::Worker& worker : list.workers()) {
    if (worker.assigned() != 0) {
      return absl::InternalError(StrCat(worker.name(), " is still counted as busy"));
    }
  }
  return absl::OkStatus();
}

absl::Status SimulatedSystem::CheckForgotten() const {
  RETURN_IF_ERROR(CheckQuiescent());
  for (const auto& [address, worker] : workers_) {
    if (worker->alive()) RETURN_IF_ERROR(Of(address, worker->CheckForgotten()));
  }
  if (router_->router().next_timer() != absl::InfiniteFuture()) {
    return absl::InternalError("the router waits for a timer");
  }
  const size_t streams = network_.open_streams();
  return streams == 0 ? absl::OkStatus() : absl::InternalError(StrCat(streams, " streams are open"));
}

uint64_t SimulatedSystem::bytes_landed() const {
  uint64_t bytes = 0;
  for (const auto& [address, worker] : workers_) {
    if (const auto* decode = dynamic_cast<const SimDecode*>(worker.get())) bytes += decode->bytes_landed();
  }
  return bytes;
}

std::vector<TokenId> SimulatedSystem::Expected(const CallSpec& spec, CallId call) const {
  SamplingParams sampling;
  sampling.seed = call;
  sampling.temperature = spec.sampling.has_temperature() ? spec.sampling.temperature() : 1;
  sampling.presence_penalty = spec.sampling.presence_penalty();
  return ScriptedEngine::ExpectedAnswer(options_.decode.engine, spec.prompt, spec.max_tokens, sampling);
}

}  // namespace baton
