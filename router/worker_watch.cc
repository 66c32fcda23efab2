#include "router/worker_watch.h"

#include <utility>

#include "common/grpc_status.h"
#include "common/log.h"
#include "common/mutex.h"
#include "grpcpp/client_context.h"
#include "router/worker_list.h"

namespace baton {

class WorkerWatch::InFlight {
 public:
  // False once the watch is ending.
  bool Begin() {
    MutexLock lock(&mutex_);
    if (ending_) return false;
    ++count_;
    return true;
  }
  void End() {
    MutexLock lock(&mutex_);
    if (--count_ == 0) none_.SignalAll();
  }
  void WaitForNone() {
    MutexLock lock(&mutex_);
    ending_ = true;
    while (count_ > 0) none_.Wait(&mutex_);
  }

 private:
  Mutex mutex_;
  CondVar none_;
  uint32_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
};

// One round of questions to one worker: who are you, then how loaded. Deletes itself with its last answer.
class WorkerWatch::Probe {
 public:
  static void Start(const WorkerWatch* watch, const std::string& worker) {
    if (!watch->in_flight_->Begin()) return;
    auto* probe = new Probe(watch, worker);
    probe->AskInfo();
  }

 private:
  Probe(const WorkerWatch* watch, const std::string& worker)
      : in_flight_(watch->in_flight_),
        loop_(watch->loop_),
        timeout_(watch->options_.probe_timeout),
        worker_(worker),
        stub_(watch->stubs_->Control(worker)) {}

  void AskInfo() {
    info_context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    stub_->async()->GetServerInfo(&info_context_, &info_request_, &info_, [this](const grpc::Status& status) {
      if (!status.ok()) {
        const std::string reason(absl::StatusCodeToString(FromGrpcStatus(status).code()));
        loop_->UpdateWorkers(
            [worker = worker_, reason](WorkerRegistry& workers) { workers.OnUnreachable(worker, reason); });
        Finish();
        return;
      }
      loop_->UpdateWorkers(
          [worker = worker_, info = info_](WorkerRegistry& workers) { workers.OnInfo(worker, info); });
      AskLoad();
    });
  }

  void AskLoad() {
    load_context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    stub_->async()->GetLoad(&load_context_, &load_request_, &load_, [this](const grpc::Status& status) {
      if (status.ok()) {
        loop_->UpdateWorkers(
            [worker = worker_, load = load_](WorkerRegistry& workers) { workers.OnLoad(worker, load); });
      }
      Finish();
    });
  }

  void Finish() {
    const std::shared_ptr<InFlight> in_flight = in_flight_;
    delete this;
    in_flight->End();
  }

  const std::shared_ptr<InFlight> in_flight_;
  RouterLoop* const loop_;
  const absl::Duration timeout_;
  const std::string worker_;
  const std::shared_ptr<v1::Control::Stub> stub_;
  grpc::ClientContext info_context_;
  grpc::ClientContext load_context_;
  v1::GetServerInfoRequest info_request_;
  v1::GetServerInfoResponse info_;
  v1::GetLoadRequest load_request_;
  v1::GetLoadResponse load_;
};

WorkerWatch::WorkerWatch(Options options, const Clock* clock, WorkerStubs* stubs, RouterLoop* loop)
    : options_(std::move(options)),
      clock_(clock),
      stubs_(stubs),
      loop_(loop),
      resolve_at_(clock->Now()),
      in_flight_(std::make_shared<InFlight>()),
      executor_("worker-watch", clock) {
  executor_.Post([this] { ProbeAll(); });
}

WorkerWatch::~WorkerWatch() {
  executor_.Stop();
  in_flight_->WaitForNone();
}

void WorkerWatch::Resolve() {
  ResolveRole(v1::ROLE_PREFILL, options_.prefill);
  ResolveRole(v1::ROLE_DECODE, options_.decode);
}

void WorkerWatch::ResolveRole(v1::Role role, const std::vector<std::string>& entries) {
  std::vector<std::string> unresolved;
  std::set<std::string> found = ResolveWorkers(entries, &unresolved);
  for (const std::string& name : unresolved) {
    if (unresolved_.insert(name).second) Log(LogLevel::kWarning, "worker_name_unresolved", {{"name", name}});
  }
  std::set<std::string>& known = known_[role];
  for (const std::string& worker : found) {
    if (known.contains(worker)) continue;
    loop_->UpdateWorkers([worker, role](WorkerRegistry& workers) { workers.Add(worker, role); });
  }
  for (const std::string& worker : known) {
    if (found.contains(worker)) continue;
    loop_->UpdateWorkers([worker](WorkerRegistry& workers) { workers.Remove(worker); });
    stubs_->Drop(worker);
  }
  known = std::move(found);
}

void WorkerWatch::ProbeAll() {
  const absl::Time now = clock_->Now();
  if (now >= resolve_at_) {
    Resolve();
    resolve_at_ = now + options_.resolve_interval;
  }
  for (const auto& [role, workers] : known_) {
    for (const std::string& worker : workers) Probe::Start(this, worker);
  }
  executor_.PostAt(now + options_.probe_interval, [this] { ProbeAll(); });
}

}  // namespace baton
