#ifndef BATON_ROUTER_WORKER_REGISTRY_H_
#define BATON_ROUTER_WORKER_REGISTRY_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "baton/v1/control.pb.h"
#include "router/pair_picker.h"
#include "router/suspicion.h"

namespace baton {

// What one request holds on a worker: given back exactly once, by its destructor, so that loads cannot drift.
// Move-only.
class Assignment;

// The workers that this router knows, what they say of themselves and what it has given them. A state
// machine: it is told and asked, and does nothing by itself. Belongs to the router's executor.
//
//   CONNECTING --OnInfo--> SERVING <--> DRAINING         as the worker says
//   SERVING <--> NOT_SERVING                             as its health says, or while its loop stands still
//   any --OnUnreachable--> SUSPECT --OnInfo--> SERVING   a peer is never banned for good
//   SERVING --OnLost--> SUSPECT --OnInfo, asked once the suspicion is over--> SERVING
//   any --OnInfo with another model, role or protocol--> INCOMPATIBLE     until it says something else
//
// Suspicion lasts longer with each loss in a row. The same holds for the way between two workers, which is
// tried again with one request at a time.
class WorkerRegistry {
 public:
  // `model_hash` is the content hash of the router's own model file: workers must serve these weights and
  // this tokenizer.
  explicit WorkerRegistry(std::string model_hash) : model_hash_(std::move(model_hash)) {}
  WorkerRegistry(const WorkerRegistry&) = delete;
  WorkerRegistry& operator=(const WorkerRegistry&) = delete;
  ~WorkerRegistry();

  void Add(const std::string& name, v1::Role role);
  // It left the list or its DNS name; what it holds is still counted until given back.
  void Remove(const std::string& name);

  // It answered a question of `asked`. A new instance_id is a new peer at the same address.
  void OnInfo(const std::string& name, const v1::GetServerInfoResponse& info, absl::Time asked);
  // With each answer: the identity in its certificate; empty in plaintext.
  void OnIdentity(const std::string& name, const std::string& identity);
  // A worker that runs requests and takes no step between two answers so far apart stands still.
  static constexpr absl::Duration kStandstill = absl::Seconds(2);
  void OnLoad(const std::string& name, const v1::GetLoadResponse& load, absl::Time now);
  // Its health says whether it takes work.
  void OnHealth(const std::string& name, bool serving);
  // It did not answer a probe.
  void OnUnreachable(const std::string& name, const std::string& reason);
  // A leg to this instance of it broke.
  void OnLost(const std::string& name, const std::string& instance_id, const std::string& reason,
              absl::Time now);
  // It refused a leg, or ended one, because it drains.
  void OnDraining(const std::string& name, const std::string& instance_id);
  // A leg to this instance went well.
  void OnProven(const std::string& name, const std::string& instance_id);

  // A handoff between the two is tried, has failed, has come through.
  void OnHandoffTried(const std::string& prefill, const std::string& decode, absl::Time now);
  void OnHandoffFailed(const std::string& prefill, const std::string& decode, absl::Time now);
  void OnHandoffLanded(const std::string& prefill, const std::string& decode);
  std::vector<std::pair<std::string, std::string>> SuspectPairs(absl::Time now) const;

  std::vector<WorkerSnapshot> Snapshot() const;
  v1::ListWorkersResponse List() const;
  // The instance id of a worker, empty when unknown.
  std::string InstanceOf(const std::string& name) const;
  // The identity in the certificate that it last showed; empty in plaintext.
  std::string IdentityOf(const std::string& name) const;
  // Another process is at the address than the one with this instance id.
  bool Replaced(const std::string& name, const std::string& instance_id) const;
  // Counts instances that took an address over.
  uint64_t replacements() const { return replacements_; }
  // Some decode worker serves.
  bool CanServe() const;
  // The model that serving workers serve: the smallest context among them. False when none serves.
  bool ServedModel(v1::ModelInfo* model) const;

  // A request was given to `name`: it counts `tokens`, and `depth_tokens` of the depth, until they are
  // released or the Assignment is dropped.
  Assignment Assign(const std::string& name, uint64_t tokens, uint64_t depth_tokens);

 private:
  friend class Assignment;
  struct Entry {
    v1::Worker worker;  // what ListWorkers shows
    v1::WorkerLimits limits;
    bool healthy = true;      // as its health service says
    bool standstill = false;  // as its load says
    absl::Time stepped_at;    // when its step count was first seen
    Suspicion suspicion;
    uint64_t assigned_tokens = 0;
    uint64_t depth_tokens = 0;
    uint32_t assigned_requests = 0;
    uint64_t last_assigned = 0;
    bool removed = false;  // kept until nothing is assigned to it
  };
  Entry* Find(const std::string& name);
  Entry* Find(const std::string& name, const std::string& instance_id);
  static void Restate(Entry& entry);
  std::string Incompatibility(v1::Role role, const v1::GetServerInfoResponse& info) const;
  void Release(const std::string& name, uint64_t tokens, uint64_t depth_tokens, bool request);

  const std::string model_hash_;
  std::map<std::string, Entry> workers_;
  std::map<std::pair<std::string, std::string>, Suspicion>
      pairs_;  // those that failed since they last worked
  uint64_t assignments_ = 0;
  uint64_t replacements_ = 0;
};

class Assignment {
 public:
  Assignment() = default;
  Assignment(Assignment&& other) noexcept;
  Assignment& operator=(Assignment&& other) noexcept;
  ~Assignment() { Reset(); }
  // The request is gone from the worker.
  void Reset();
  // Its tokens are computed; the request itself is still there.
  void ReleaseTokens();

 private:
  friend class WorkerRegistry;
  Assignment(WorkerRegistry* registry, std::string name, uint64_t tokens, uint64_t depth_tokens)
      : registry_(registry), name_(std::move(name)), tokens_(tokens), depth_tokens_(depth_tokens) {}
  WorkerRegistry* registry_ = nullptr;
  std::string name_;
  uint64_t tokens_ = 0;
  uint64_t depth_tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_ROUTER_WORKER_REGISTRY_H_
