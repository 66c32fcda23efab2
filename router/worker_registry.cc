#include "router/worker_registry.h"

#include <algorithm>
#include <utility>

#include "common/check.h"
#include "common/protocol_version.h"
#include "common/str_cat.h"

namespace baton {

WorkerRegistry::~WorkerRegistry() {
  for (const auto& [name, entry] : workers_) BATON_CHECK(entry.assigned_requests == 0);
}

void WorkerRegistry::Add(const std::string& name, v1::Role role) {
  Entry& entry = workers_[name];
  entry.removed = false;
  if (entry.worker.has_name()) return;
  entry.worker.set_name(name);
  entry.worker.set_role(role);
  entry.worker.set_state(v1::WORKER_STATE_CONNECTING);
}

void WorkerRegistry::Remove(const std::string& name) {
  const auto it = workers_.find(name);
  if (it == workers_.end()) return;
  std::erase_if(pairs_,
                [&](const auto& pair) { return pair.first.first == name || pair.first.second == name; });
  it->second.removed = true;
  if (it->second.assigned_requests == 0) workers_.erase(it);
}

std::string WorkerRegistry::Incompatibility(v1::Role role, const v1::GetServerInfoResponse& info) const {
  if (info.role() != role)
    return StrCat("is a ", v1::Role_Name(info.role()), ", listed as ", v1::Role_Name(role));
  if (info.protocol_min() > kProtocolVersion || info.protocol_max() < kOldestProtocolVersion) {
    return StrCat("speaks protocol ", info.protocol_min(), " to ", info.protocol_max(), ", this router ",
                  kOldestProtocolVersion, " to ", kProtocolVersion);
  }
  // A fingerprint begins with the content hash of the model file.
  if (info.model().fingerprint().compare(0, model_hash_.size(), model_hash_) != 0) {
    return StrCat("serves another model: fingerprint ", info.model().fingerprint(), ", this router has ",
                  model_hash_);
  }
  return "";
}

WorkerRegistry::Entry* WorkerRegistry::Find(const std::string& name) {
  const auto it = workers_.find(name);
  return it == workers_.end() ? nullptr : &it->second;
}

WorkerRegistry::Entry* WorkerRegistry::Find(const std::string& name, const std::string& instance_id) {
  Entry* entry = Find(name);
  return entry == nullptr || entry->worker.instance_id() != instance_id ? nullptr : entry;
}

// A worker that could serve does so unless its health or its load says otherwise.
void WorkerRegistry::Restate(Entry& entry) {
  v1::Worker& worker = entry.worker;
  if (worker.state() != v1::WORKER_STATE_SERVING && worker.state() != v1::WORKER_STATE_NOT_SERVING) return;
  const bool serves = entry.healthy && !entry.standstill;
  worker.set_state(serves ? v1::WORKER_STATE_SERVING : v1::WORKER_STATE_NOT_SERVING);
  worker.set_state_reason(serves ? "" : entry.healthy ? "takes no steps" : "its health says so");
}

void WorkerRegistry::OnInfo(const std::string& name, const v1::GetServerInfoResponse& info,
                            absl::Time asked) {
  Entry* entry = Find(name);
  if (entry == nullptr) return;
  v1::Worker& worker = entry->worker;
  if (worker.instance_id() != info.instance_id()) {
    replacements_ += worker.has_instance_id();
    worker.clear_load();
    entry->suspicion.Clear();
    entry->standstill = false;
    std::erase_if(pairs_,
                  [&](const auto& pair) { return pair.first.first == name || pair.first.second == name; });
  } else if (worker.state() == v1::WORKER_STATE_SUSPECT && asked < entry->suspicion.over_at()) {
    return;
  }
  worker.set_instance_id(info.instance_id());
  *worker.mutable_model() = info.model();
  entry->limits = info.limits();
  const std::string incompatibility = Incompatibility(worker.role(), info);
  worker.set_state_reason(incompatibility);
  if (!incompatibility.empty()) {
    worker.set_state(v1::WORKER_STATE_INCOMPATIBLE);
  } else if (info.state() == v1::SERVER_STATE_DRAINING) {
    worker.set_state(v1::WORKER_STATE_DRAINING);
  } else {
    worker.set_state(v1::WORKER_STATE_SERVING);
    Restate(*entry);
  }
}

void WorkerRegistry::OnIdentity(const std::string& name, const std::string& identity) {
  Entry* entry = Find(name);
  if (entry == nullptr) return;
  if (identity.empty()) {
    entry->worker.clear_identity();
  } else {
    entry->worker.set_identity(identity);
  }
}

void WorkerRegistry::OnLoad(const std::string& name, const v1::GetLoadResponse& load, absl::Time now) {
  Entry* entry = Find(name);
  if (entry == nullptr) return;
  const bool moves = !entry->worker.has_load() || load.requests_running() == 0 ||
                     entry->worker.load().requests_running() == 0 ||
                     load.steps() != entry->worker.load().steps();
  if (moves) entry->stepped_at = now;
  entry->standstill = now - entry->stepped_at >= kStandstill;
  *entry->worker.mutable_load() = load;
  Restate(*entry);
}

void WorkerRegistry::OnHealth(const std::string& name, bool serving) {
  Entry* entry = Find(name);
  if (entry == nullptr) return;
  entry->healthy = serving;
  Restate(*entry);
}

void WorkerRegistry::OnUnreachable(const std::string& name, const std::string& reason) {
  Entry* entry = Find(name);
  if (entry == nullptr) return;
  v1::Worker& worker = entry->worker;
  worker.set_state(worker.has_instance_id() ? v1::WORKER_STATE_SUSPECT : v1::WORKER_STATE_CONNECTING);
  worker.set_state_reason(reason);
}

void WorkerRegistry::OnLost(const std::string& name, const std::string& instance_id,
                            const std::string& reason, absl::Time now) {
  Entry* entry = Find(name, instance_id);
  if (entry == nullptr) return;
  // The many legs of a worker that was lost are one loss.
  if (entry->worker.state() != v1::WORKER_STATE_SUSPECT)
    entry->suspicion.OnFailure(now, absl::ZeroDuration());
  OnUnreachable(name, reason);
}

void WorkerRegistry::OnDraining(const std::string& name, const std::string& instance_id) {
  Entry* entry = Find(name, instance_id);
  if (entry == nullptr || entry->worker.state() != v1::WORKER_STATE_SERVING) return;
  entry->worker.set_state(v1::WORKER_STATE_DRAINING);
}

void WorkerRegistry::OnProven(const std::string& name, const std::string& instance_id) {
  Entry* entry = Find(name, instance_id);
  if (entry != nullptr && entry->worker.state() != v1::WORKER_STATE_SUSPECT) entry->suspicion.Clear();
}

void WorkerRegistry::OnHandoffTried(const std::string& prefill, const std::string& decode, absl::Time now) {
  const auto it = pairs_.find({prefill, decode});
  if (it != pairs_.end()) it->second.OnTrial(now);
}

void WorkerRegistry::OnHandoffFailed(const std::string& prefill, const std::string& decode, absl::Time now) {
  if (Find(prefill) == nullptr || Find(decode) == nullptr) return;
  pairs_[{prefill, decode}].OnFailure(now, Suspicion::kFirst);
}

void WorkerRegistry::OnHandoffLanded(const std::string& prefill, const std::string& decode) {
  pairs_.erase({prefill, decode});
}

std::vector<std::pair<std::string, std::string>> WorkerRegistry::SuspectPairs(absl::Time now) const {
  std::vector<std::pair<std::string, std::string>> suspects;
  for (const auto& [pair, suspicion] : pairs_) {
    if (now < suspicion.over_at()) suspects.push_back(pair);
  }
  return suspects;
}

std::vector<WorkerSnapshot> WorkerRegistry::Snapshot() const {
  std::vector<WorkerSnapshot> snapshots;
  for (const auto& [name, entry] : workers_) {
    if (entry.removed) continue;
    WorkerSnapshot& snapshot = snapshots.emplace_back();
    snapshot.name = name;
    snapshot.role = entry.worker.role();
    snapshot.serving = entry.worker.state() == v1::WORKER_STATE_SERVING;
    snapshot.instance_id = entry.worker.instance_id();
    snapshot.fingerprint = entry.worker.model().fingerprint();
    snapshot.prefill_recipe = entry.worker.model().prefill_recipe();
    snapshot.decode_recipe = entry.worker.model().decode_recipe();
    snapshot.block_tokens = std::max(1u, entry.limits.block_tokens());
    snapshot.kv_capacity_tokens = static_cast<uint64_t>(std::max(0.0, entry.limits.kv_capacity_tokens()));
    snapshot.max_running = entry.limits.max_running();
    snapshot.reserve_tokens = entry.limits.reserve_tokens();
    snapshot.assigned_requests = entry.assigned_requests;
    snapshot.assigned_tokens = entry.assigned_tokens;
    snapshot.depth_tokens = entry.depth_tokens;
    snapshot.last_assigned = entry.last_assigned;
  }
  return snapshots;
}

v1::ListWorkersResponse WorkerRegistry::List() const {
  v1::ListWorkersResponse response;
  for (const auto& [name, entry] : workers_) {
    v1::Worker& worker = *response.add_workers();
    worker = entry.worker;
    worker.set_assigned(entry.assigned_requests);
  }
  return response;
}

std::string WorkerRegistry::IdentityOf(const std::string& name) const {
  const auto it = workers_.find(name);
  return it == workers_.end() ? "" : it->second.worker.identity();
}

std::string WorkerRegistry::InstanceOf(const std::string& name) const {
  const auto it = workers_.find(name);
  return it == workers_.end() ? "" : it->second.worker.instance_id();
}

bool WorkerRegistry::Replaced(const std::string& name, const std::string& instance_id) const {
  const auto it = workers_.find(name);
  return it != workers_.end() && it->second.worker.instance_id() != instance_id;
}

bool WorkerRegistry::CanServe() const {
  v1::ModelInfo ignored;
  return ServedModel(&ignored);
}

bool WorkerRegistry::ServedModel(v1::ModelInfo* model) const {
  bool found = false;
  for (const auto& [name, entry] : workers_) {
    if (entry.worker.role() != v1::ROLE_DECODE || entry.worker.state() != v1::WORKER_STATE_SERVING) continue;
    if (!found || entry.worker.model().context_tokens() < model->context_tokens())
      *model = entry.worker.model();
    found = true;
  }
  return found;
}

Assignment WorkerRegistry::Assign(const std::string& name, uint64_t tokens, uint64_t depth_tokens) {
  Entry& entry = workers_.at(name);
  ++entry.assigned_requests;
  entry.assigned_tokens += tokens;
  entry.depth_tokens += depth_tokens;
  entry.last_assigned = ++assignments_;
  return Assignment(this, name, tokens, depth_tokens);
}

void WorkerRegistry::Release(const std::string& name, uint64_t tokens, uint64_t depth_tokens, bool request) {
  const auto it = workers_.find(name);
  BATON_CHECK(it != workers_.end() && it->second.assigned_tokens >= tokens &&
              it->second.depth_tokens >= depth_tokens);
  Entry& entry = it->second;
  entry.assigned_tokens -= tokens;
  entry.depth_tokens -= depth_tokens;
  if (!request) return;
  BATON_CHECK(entry.assigned_requests > 0);
  --entry.assigned_requests;
  if (entry.removed && entry.assigned_requests == 0) workers_.erase(it);
}

Assignment::Assignment(Assignment&& other) noexcept
    : registry_(std::exchange(other.registry_, nullptr)),
      name_(std::move(other.name_)),
      tokens_(other.tokens_),
      depth_tokens_(other.depth_tokens_) {}

Assignment& Assignment::operator=(Assignment&& other) noexcept {
  Reset();
  registry_ = std::exchange(other.registry_, nullptr);
  name_ = std::move(other.name_);
  tokens_ = other.tokens_;
  depth_tokens_ = other.depth_tokens_;
  return *this;
}

void Assignment::Reset() {
  if (WorkerRegistry* registry = std::exchange(registry_, nullptr)) {
    registry->Release(name_, tokens_, depth_tokens_, true);
  }
}

void Assignment::ReleaseTokens() {
  if (registry_ == nullptr) return;
  registry_->Release(name_, std::exchange(tokens_, 0), std::exchange(depth_tokens_, 0), false);
}

}  // namespace baton
