#include "kv_transfer/handoff_receiver.h"

#include <map>
#include <optional>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/serial_executor.h"
#include "kv_transfer/land_service.h"

namespace baton {
namespace {

LandingTable::Options TableOptions(const std::vector<KvBackendKind>& kinds) {
  LandingTable::Options options;
  for (const KvBackendKind& kind : kinds) options.transports.push_back({kind.name, kind.data_on_stream});
  return options;
}

}  // namespace

// Everything below runs on executor_'s thread, but for the constructor, the destructor and what posts to it.
class HandoffReceiver::Core {
 public:
  explicit Core(Options options)
      : options_(std::move(options)),
        executor_("kv-land", options_.clock),
        service_({.on_connected =
                      [this](LandStreamId stream, std::string identity) {
                        Post([this, stream, identity = std::move(identity)]() mutable {
                          return table_.OnConnected(stream, executor_.Now(), std::move(identity));
                        });
                      },
                  .on_message =
                      [this](LandStreamId stream, v1::LandRequest request) {
                        Post([this, stream, request = std::move(request)]() mutable {
                          LandingTable::Actions actions =
                              table_.OnMessage(stream, std::move(request), executor_.Now());
                          service_.ReadNext(stream);
                          return actions;
                        });
                      },
                  .on_closed =
                      [this](LandStreamId stream, absl::Status status) {
                        Post([this, stream, status = std::move(status)] {
                          return table_.OnClosed(stream, status, executor_.Now());
                        });
                      }}),
        table_(TableOptions(options_.transports), options_.pools) {
    for (const KvBackendKind& kind : options_.transports) {
      names_.push_back(kind.name);
      backends_.emplace(kind.name, kind.make_receiver(options_.device));
    }
  }

  ~Core() {
    Post([this] {
      ending_ = true;
      return table_.DropAll(executor_.Now());
    });
    {
      MutexLock lock(&mutex_);
      while (!drained_) drained_changed_.Wait(&mutex_);
    }
    executor_.Stop();
  }

  // Runs an event of the table on the executor, then does what it says.
  template <typename Event>
  void Post(Event event) {
    executor_.Post([this, event = std::move(event)]() mutable { Run(event()); });
  }

  LandingTable& table() { return table_; }
  absl::Time Now() const { return executor_.Now(); }
  LandService& service() { return service_; }
  const std::vector<std::string>& names() const { return names_; }

 private:
  void Run(LandingTable::Actions actions) {
    for (landing::Action& action : actions) {
      std::visit([this](auto& a) { Do(a); }, action);
    }
    if (!ending_ || table_.draining() > 0) return;
    MutexLock lock(&mutex_);
    drained_ = true;
    drained_changed_.Signal();
  }

  void Do(landing::SendReply& action) { service_.Reply(action.stream, std::move(action.reply)); }
  void Do(landing::ReceivePiece& action) {
    PieceBuffer destination{action.transfer_id, action.piece.id, action.bytes, std::move(action.destination)};
    backends_.at(action.transport)
        ->Receive(std::move(destination),
                  [this, stream = action.stream, id = action.piece.id](absl::Status status) {
                    Post([this, stream, id, status = std::move(status)] {
                      return table_.OnVisible(stream, id, status, executor_.Now());
                    });
                  });
  }
  void Do(landing::DeliverData& action) {
    backends_.at(action.transport)
        ->Deliver(action.transfer_id, action.piece_id, action.offset, std::move(action.bytes),
                  action.last ? std::optional<uint64_t>(action.checksum) : std::nullopt);
  }
  void Do(landing::WithdrawPieces& action) { backends_.at(action.transport)->Withdraw(action.transfer_id); }
  void Do(landing::CloseStream& action) { service_.Close(action.stream, action.status); }
  void Do(landing::Landed& action) {
    if (!ending_) options_.on_landed(std::move(action));
  }
  void Do(landing::LandingFailed& action) {
    const std::string reason = absl::StatusCodeToString(action.status.code());
    if (options_.metrics != nullptr) options_.metrics->Get<Metric::kKvTransferFailures>(reason).Increment();
    Log(LogLevel::kWarning, "handoff_failed",
        {{"transfer_id", action.transfer_id.ToHex()},
         {"side", "decode"},
         {"sender_instance_id", action.sender_instance_id},
         {"status", reason},
         {"message", std::string(action.status.message())}});
    if (!ending_) options_.on_failed(std::move(action));
  }
  void Do(landing::SetTimer& action) {
    executor_.CancelTimer(timer_);
    timer_ = executor_.PostAt(action.when, [this] { Run(table_.OnTimer(executor_.Now())); });
  }

  const Options options_;
  SerialExecutor executor_;         // stopped by the destructor, destroyed after what may still post to it
  std::vector<std::string> names_;  // of transports, constant
  LandService service_;
  std::map<std::string, std::unique_ptr<KvReceiveBackend>> backends_;  // constant
  LandingTable table_;
  Executor::TimerId timer_ = 0;
  bool ending_ = false;

  Mutex mutex_;
  CondVar drained_changed_;
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
};

HandoffReceiver::HandoffReceiver(Options options) : core_(std::make_unique<Core>(std::move(options))) {}
HandoffReceiver::~HandoffReceiver() = default;

void HandoffReceiver::Add(LandingSpec spec) {
  core_->Post([core = core_.get(), spec = std::move(spec)]() mutable {
    return core->table().Add(std::move(spec), core->Now());
  });
}

void HandoffReceiver::Drop(const TransferId& transfer_id) {
  core_->Post([core = core_.get(), transfer_id] { return core->table().Drop(transfer_id, core->Now()); });
}

grpc::Service* HandoffReceiver::service() { return &core_->service(); }
const std::vector<std::string>& HandoffReceiver::transports() const { return core_->names(); }

}  // namespace baton
