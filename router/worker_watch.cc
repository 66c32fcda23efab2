#include "router/worker_watch.h"

#include <utility>

#include "common/caller.h"
#include "common/grpc_status.h"
#include "common/log.h"
#include "common/mutex.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"
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
  static void Start(WorkerWatch* watch, const std::string& worker, v1::Role role) {
    if (!watch->in_flight_->Begin()) return;
    auto* probe = new Probe(watch, worker, role);
    probe->AskInfo();
  }

 private:
  Probe(WorkerWatch* watch, const std::string& worker, v1::Role role)
      : watch_(watch),
        in_flight_(watch->in_flight_),
        loop_(watch->loop_),
        clock_(watch->clock_),
        timeout_(watch->options_.probe_timeout),
        worker_(worker),
        stub_(watch->stubs_->Control(worker, role)) {}

  void AskInfo() {
    const absl::Time asked = clock_->Now();
    info_context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    stub_->async()->GetServerInfo(
        &info_context_, &info_request_, &info_, [this, asked](const grpc::Status& status) {
          if (!status.ok()) {
            const std::string reason(absl::StatusCodeToString(FromGrpcStatus(status).code()));
            loop_->UpdateWorkers([worker = worker_, reason](WorkerRegistry& workers) {
              workers.OnUnreachable(worker, reason);
            });
            Finish(/*answered=*/false);
            return;
          }
          loop_->UpdateWorkers(
              [worker = worker_, info = info_, asked,
               identity = PeerIdentity(*info_context_.auth_context())](WorkerRegistry& workers) {
                workers.OnInfo(worker, info, asked);
                workers.OnIdentity(worker, identity);
              });
          AskLoad();
        });
  }

  void AskLoad() {
    load_context_.set_deadline(absl::ToChronoTime(absl::Now() + timeout_));
    stub_->async()->GetLoad(&load_context_, &load_request_, &load_, [this](const grpc::Status& status) {
      if (status.ok()) {
        loop_->UpdateWorkers([worker = worker_, load = load_, now = clock_->Now()](WorkerRegistry& workers) {
          workers.OnLoad(worker, load, now);
        });
      }
      Finish(/*answered=*/true);
    });
  }

  void Finish(bool answered) {
    watch_->executor_.Post(
        [watch = watch_, worker = worker_, answered] { watch->OnProbed(worker, answered); });
    const std::shared_ptr<InFlight> in_flight = in_flight_;
    delete this;
    in_flight->End();
  }

  WorkerWatch* const watch_;  // lives until in_flight_ says that nothing is in flight
  const std::shared_ptr<InFlight> in_flight_;
  RouterLoop* const loop_;
  const Clock* const clock_;
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

// A Watch on one worker's health, from its start to its end. The call holds a reference until gRPC is done
// with it.
class WorkerWatch::HealthStream final
    : public grpc::ClientReadReactor<grpc::health::v1::HealthCheckResponse> {
 public:
  // Null once the watch is ending.
  static std::shared_ptr<HealthStream> Open(WorkerWatch* watch, const std::string& worker, v1::Role role) {
    if (!watch->in_flight_->Begin()) return nullptr;
    std::shared_ptr<HealthStream> stream(new HealthStream(watch, worker, role));
    stream->self_ = stream;
    stream->stub_->async()->Watch(&stream->context_, &stream->request_, stream.get());
    stream->StartRead(&stream->response_);
    stream->StartCall();
    return stream;
  }
  void Cancel() { context_.TryCancel(); }

 private:
  HealthStream(WorkerWatch* watch, const std::string& worker, v1::Role role)
      : watch_(watch),
        in_flight_(watch->in_flight_),
        worker_(worker),
        stub_(watch->stubs_->Health(worker, role)) {
    request_.set_service(role == v1::ROLE_PREFILL ? "baton.v1.PrefillWorker" : "baton.v1.DecodeWorker");
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    const bool serving = response_.status() == grpc::health::v1::HealthCheckResponse::SERVING;
    watch_->executor_.Post([watch = watch_, worker = worker_, serving] { watch->OnHealth(worker, serving); });
    StartRead(&response_);
  }

  void OnDone(const grpc::Status&) override {
    watch_->executor_.Post(
        [watch = watch_, worker = worker_, stream = this] { watch->OnHealthClosed(worker, stream); });
    const std::shared_ptr<InFlight> in_flight = in_flight_;
    const std::shared_ptr<HealthStream> last = std::move(self_);
    in_flight->End();
  }

  WorkerWatch* const watch_;  // lives until in_flight_ says that nothing is in flight
  const std::shared_ptr<InFlight> in_flight_;
  const std::string worker_;
  const std::shared_ptr<grpc::health::v1::Health::Stub> stub_;
  std::shared_ptr<HealthStream> self_;  // until OnDone
  grpc::ClientContext context_;
  grpc::health::v1::HealthCheckRequest request_;
  grpc::health::v1::HealthCheckResponse response_;
};

WorkerWatch::WorkerWatch(Options options, const Clock* clock, WorkerStubs* stubs, RouterLoop* loop)
    : options_(std::move(options)),
      clock_(clock),
      stubs_(stubs),
      loop_(loop),
      in_flight_(std::make_shared<InFlight>()),
      schedule_(options_.probe_interval, options_.longest_probe_pause),
      executor_("worker-watch", clock),
      resolver_("worker-names", clock) {
  resolver_.Post([this] { ResolveAll(); });
}

WorkerWatch::~WorkerWatch() {
  resolver_.Stop();
  executor_.Stop();
  for (const auto& [worker, stream] : health_) stream->Cancel();
  in_flight_->WaitForNone();
}

void WorkerWatch::ResolveAll() {
  for (const auto& [role, entries] : {std::make_pair(v1::ROLE_PREFILL, &options_.prefill),
                                      std::make_pair(v1::ROLE_DECODE, &options_.decode)}) {
    executor_.Post([this, role = role, found = Resolve(*entries)] { OnResolved(role, found); });
  }
  resolver_.PostAt(clock_->Now() + options_.resolve_interval, [this] { ResolveAll(); });
}

std::set<std::string> WorkerWatch::Resolve(const std::vector<std::string>& entries) {
  std::set<std::string> workers;
  for (const std::string& entry : entries) {
    std::vector<std::string> failed;
    std::set<std::string> found = ResolveWorkers({entry}, &failed);
    if (failed.empty()) {
      unresolved_.erase(entry);
      resolved_[entry] = std::move(found);
    } else if (unresolved_.insert(entry).second) {
      Log(LogLevel::kWarning, "worker_name_unresolved", {{"name", entry}});
    }
    const std::set<std::string>& known = resolved_[entry];
    workers.insert(known.begin(), known.end());
  }
  return workers;
}

void WorkerWatch::OnResolved(v1::Role role, const std::set<std::string>& found) {
  for (const std::string& worker : found) {
    if (!workers_.emplace(worker, role).second) continue;
    loop_->UpdateWorkers([worker, role](WorkerRegistry& workers) { workers.Add(worker, role); });
    schedule_.Add(worker, clock_->Now());
  }
  std::vector<std::string> gone;
  for (const auto& [worker, known_role] : workers_) {
    if (known_role == role && !found.contains(worker)) gone.push_back(worker);
  }
  for (const std::string& worker : gone) {
    loop_->UpdateWorkers([worker](WorkerRegistry& workers) { workers.Remove(worker); });
    const auto stream = health_.find(worker);
    if (stream != health_.end()) stream->second->Cancel();
    schedule_.Remove(worker);
    reopen_at_.erase(worker);
    workers_.erase(worker);
    stubs_->Drop(worker);
  }
  ProbeDue();
}

void WorkerWatch::OnProbed(const std::string& worker, bool answered) {
  const auto it = workers_.find(worker);
  if (it == workers_.end()) return;
  schedule_.OnAnswer(worker, answered, clock_->Now());
  if (answered && !health_.contains(worker) && clock_->Now() >= reopen_at_[worker]) {
    if (std::shared_ptr<HealthStream> stream = HealthStream::Open(this, worker, it->second)) {
      health_[worker] = std::move(stream);
    }
  }
  ProbeDue();
}

void WorkerWatch::OnHealth(const std::string& worker, bool serving) {
  loop_->UpdateWorkers([worker, serving](WorkerRegistry& workers) { workers.OnHealth(worker, serving); });
  schedule_.Hurry(worker, clock_->Now());
  ProbeDue();
}

void WorkerWatch::OnHealthClosed(const std::string& worker, const HealthStream* stream) {
  const auto it = health_.find(worker);
  if (it != health_.end() && it->second.get() == stream) health_.erase(it);
  if (!workers_.contains(worker)) return;
  // A worker that drains says so and closes: it is not asked again and again.
  reopen_at_[worker] = clock_->Now() + options_.probe_interval;
  schedule_.Hurry(worker, clock_->Now());
  ProbeDue();
}

void WorkerWatch::ProbeDue() {
  for (const std::string& worker : schedule_.TakeDue(clock_->Now())) {
    Probe::Start(this, worker, workers_.at(worker));
  }
  if (timer_ != 0) executor_.CancelTimer(timer_);
  timer_ = 0;
  const absl::Time next = schedule_.next_timer();
  if (next == absl::InfiniteFuture()) return;
  timer_ = executor_.PostAt(next, [this] {
    timer_ = 0;
    ProbeDue();
  });
}

}  // namespace baton
