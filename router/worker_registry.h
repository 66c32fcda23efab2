#ifndef BATON_ROUTER_WORKER_REGISTRY_H_
#define BATON_ROUTER_WORKER_REGISTRY_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "baton/v1/control.pb.h"
#include "router/pair_picker.h"

namespace baton {

// What one request holds on a worker: given back exactly once, by its destructor, so that loads cannot drift.
// Move-only.
class Assignment;

// The workers that this router knows, what they say of themselves and what it has given them. A state
// machine: it is told and asked, and does nothing by itself. Belongs to the router's executor.
//
//   CONNECTING --OnInfo--> SERVING <--> DRAINING      as the worker says
//   SERVING --OnLost or OnUnreachable--> SUSPECT --OnInfo--> SERVING      a peer is never banned for good
//   any --OnInfo with another model, role or protocol--> INCOMPATIBLE     until it says something else
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

  // It answered. A new instance_id is a new peer at the same address.
  void OnInfo(const std::string& name, const v1::GetServerInfoResponse& info);
  void OnLoad(const std::string& name, const v1::GetLoadResponse& load);
  // It did not answer a probe.
  void OnUnreachable(const std::string& name, const std::string& reason);
  // A leg to this instance of it broke: suspect until it answers a probe that was sent later.
  void OnLost(const std::string& name, const std::string& instance_id, const std::string& reason);

  std::vector<WorkerSnapshot> Snapshot() const;
  v1::ListWorkersResponse List() const;
  // The instance id of a worker, empty when unknown.
  std::string InstanceOf(const std::string& name) const;
  // Some decode worker serves.
  bool CanServe() const;
  // The model that serving workers serve: the smallest context among them. False when none serves.
  bool ServedModel(v1::ModelInfo* model) const;

  // A request was given to `name`: it counts `tokens` until they are released or the Assignment is dropped.
  Assignment Assign(const std::string& name, uint64_t tokens);

 private:
  friend class Assignment;
  struct Entry {
    v1::Worker worker;  // what ListWorkers shows
    v1::WorkerLimits limits;
    uint64_t assigned_tokens = 0;
    uint32_t assigned_requests = 0;
    uint64_t last_assigned = 0;
    bool removed = false;  // kept until nothing is assigned to it
  };
  std::string Incompatibility(v1::Role role, const v1::GetServerInfoResponse& info) const;
  void Release(const std::string& name, uint64_t tokens, bool request);

  const std::string model_hash_;
  std::map<std::string, Entry> workers_;
  uint64_t assignments_ = 0;
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
  Assignment(WorkerRegistry* registry, std::string name, uint64_t tokens)
      : registry_(registry), name_(std::move(name)), tokens_(tokens) {}
  WorkerRegistry* registry_ = nullptr;
  std::string name_;
  uint64_t tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_ROUTER_WORKER_REGISTRY_H_
