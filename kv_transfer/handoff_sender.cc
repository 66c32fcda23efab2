#include "kv_transfer/handoff_sender.h"

#include <map>
#include <utility>
#include <variant>

#include "absl/base/thread_annotations.h"
#include "common/log.h"
#include "common/mutex.h"
#include "common/serial_executor.h"
#include "kv_transfer/kv_sender.h"
#include "kv_transfer/landing.h"

namespace baton {

// Everything below runs on executor_'s thread, but for the constructor, the destructor and what posts to it.
class HandoffSender::Core {
 public:
  explicit Core(Options options)
      : options_(std::move(options)),
        executor_("kv-send", options_.clock),
        client_(options_.channels,
                {.on_reply =
                     [this](const TransferId& id, v1::LandReply reply) {
                       executor_.Post([this, id, reply = std::move(reply)] {
                         WithSender(id, [&](KvSender& s) { return s.OnReply(reply, executor_.Now()); });
                         client_.ReadNext(id);
                       });
                     },
                 .on_closed =
                     [this](const TransferId& id, absl::Status status) {
                       executor_.Post([this, id, status = std::move(status)] {
                         WithSender(id, [&](KvSender& s) { return s.OnClosed(status, executor_.Now()); });
                       });
                     }}) {
    for (const KvBackendKind& kind : options_.transports) {
      names_.push_back(kind.name);
      backends_.emplace(kind.name, kind.make_sender(options_.device, &client_));
    }
  }

  ~Core() {
    executor_.Post([this] {
      ending_ = true;
      std::vector<TransferId> ids;
      for (const auto& [id, entry] : entries_) ids.push_back(id);
      for (const TransferId& id : ids) {
        WithSender(id, [this](KvSender& s) { return s.Cancel(executor_.Now()); });
      }
      ReportIfDrained();
    });
    {
      MutexLock lock(&mutex_);
      while (!drained_) drained_changed_.Wait(&mutex_);
    }
    executor_.Stop();
  }

  Executor& executor() { return executor_; }

  void Start(HandoffSpec handoff, PinnedKv source) {
    const TransferId id = handoff.transfer_id;
    absl::StatusOr<std::string> transport = ChooseTransport(handoff.landing, names_);
    if (!transport.ok()) return Report({.transfer_id = id, .status = transport.status()});
    KvSender::Spec spec{.transfer_id = id, .sender_instance_id = options_.instance_id};
    const std::string address = handoff.landing.address();
    const std::string identity = handoff.landing.identity();
    spec.landing = std::move(handoff.landing);
    spec.transport = *transport;
    spec.prompt_tokens = handoff.prompt_tokens;
    spec.deadline = handoff.deadline;
    auto sender = KvSender::Create(std::move(spec), options_.pools, std::move(source));
    if (sender.ok() && entries_.count(id) != 0)
      sender = absl::AlreadyExistsError("the transfer was started before");
    if (!sender.ok()) return Report({.transfer_id = id, .status = sender.status(), .transport = *transport});
    entries_.emplace(id, Entry{*std::move(sender), address, identity});
    WithSender(id, [this](KvSender& s) { return s.Start(executor_.Now()); });
  }

  // Gives one event to the sender of a transfer, if it still has one, and does what it says.
  template <typename Event>
  void WithSender(const TransferId& id, Event event) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    for (KvSender::Action& action : event(*entry.sender)) {
      std::visit([&](auto& a) { Do(id, entry, a); }, action);
    }
    if (!entry.sender->drained()) return;
    executor_.CancelTimer(entry.timer);
    entries_.erase(found);
    ReportIfDrained();
  }

 private:
  struct Entry {
    std::unique_ptr<KvSender> sender;
    std::string address;
    std::string identity;  // of the decode worker
    Executor::TimerId timer = 0;
  };

  void Do(const TransferId& id, Entry& entry, KvSender::SendLand& action) {
    if (action.request.has_open()) client_.Open(id, entry.address, entry.identity);
    client_.Send(id, std::move(action.request));
  }
  void Do(const TransferId& id, Entry& entry, KvSender::MovePiece& action) {
    PieceBuffer source{id, action.piece.id, action.bytes, std::move(action.source)};
    backends_.at(entry.sender->transport())
        ->Move(std::move(source), [this, id, piece = action.piece.id](absl::Status status) {
          executor_.Post([this, id, piece, status = std::move(status)] {
            WithSender(id, [&](KvSender& s) { return s.OnMoved(piece, status, executor_.Now()); });
          });
        });
  }
  void Do(const TransferId& id, Entry& entry, KvSender::CancelMoves&) {
    backends_.at(entry.sender->transport())->Cancel(id);
  }
  void Do(const TransferId& id, Entry&, KvSender::CloseLand&) { client_.Close(id); }
  void Do(const TransferId& id, Entry& entry, KvSender::SetTimer& action) {
    executor_.CancelTimer(entry.timer);
    entry.timer = executor_.PostAt(action.when, [this, id] {
      WithSender(id, [this](KvSender& s) { return s.OnTimer(executor_.Now()); });
    });
  }
  void Do(const TransferId& id, Entry& entry, KvSender::Finished& action) {
    const std::string& transport = entry.sender->transport();
    if (action.status.ok() && options_.metrics != nullptr) {
      options_.metrics->Get<Metric::kKvTransfer>(transport).Observe(absl::ToDoubleSeconds(action.transfer));
      options_.metrics->Get<Metric::kKvTransferBytes>(transport).Increment(static_cast<double>(action.bytes));
    }
    Report({id, std::move(action.status), action.bytes, action.handoff, transport});
  }

  void Report(HandoffResult result) {
    if (!result.status.ok()) {
      const std::string reason = absl::StatusCodeToString(result.status.code());
      if (options_.metrics != nullptr) options_.metrics->Get<Metric::kKvTransferFailures>(reason).Increment();
      Log(LogLevel::kWarning, "handoff_failed",
          {{"transfer_id", result.transfer_id.ToHex()},
           {"side", "prefill"},
           {"transport", result.transport},
           {"status", reason},
           {"message", std::string(result.status.message())}});
    }
    if (!ending_) options_.on_finished(std::move(result));
  }

  void ReportIfDrained() {
    if (!ending_ || !entries_.empty()) return;
    MutexLock lock(&mutex_);
    drained_ = true;
    drained_changed_.Signal();
  }

  const Options options_;
  SerialExecutor executor_;         // stopped by the destructor, destroyed after what may still post to it
  std::vector<std::string> names_;  // of transports, constant
  LandClient client_;
  std::map<std::string, std::unique_ptr<KvSendBackend>> backends_;  // constant
  std::map<TransferId, Entry> entries_;
  bool ending_ = false;

  Mutex mutex_;
  CondVar drained_changed_;
  bool drained_ ABSL_GUARDED_BY(mutex_) = false;
};

HandoffSender::HandoffSender(Options options) : core_(std::make_unique<Core>(std::move(options))) {}
HandoffSender::~HandoffSender() = default;

void HandoffSender::Start(HandoffSpec spec, PinnedKv source) {
  core_->executor().Post([core = core_.get(), spec = std::move(spec), source = std::move(source)]() mutable {
    core->Start(std::move(spec), std::move(source));
  });
}

void HandoffSender::Computed(const TransferId& transfer_id, LayerRange model_layers, TokenRange tokens) {
  core_->executor().Post([=, core = core_.get()] {
    core->WithSender(transfer_id,
                     [&](KvSender& s) { return s.OnComputed(model_layers, tokens, core->executor().Now()); });
  });
}

void HandoffSender::PromptDone(const TransferId& transfer_id, v1::LandCommit commit) {
  core_->executor().Post([transfer_id, commit = std::move(commit), core = core_.get()] {
    core->WithSender(transfer_id,
                     [&](KvSender& s) { return s.OnPromptDone(commit, core->executor().Now()); });
  });
}

void HandoffSender::Cancel(const TransferId& transfer_id) {
  core_->executor().Post([transfer_id, core = core_.get()] {
    core->WithSender(transfer_id, [&](KvSender& s) { return s.Cancel(core->executor().Now()); });
  });
}

}  // namespace baton
