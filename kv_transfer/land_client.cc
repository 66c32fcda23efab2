#include "kv_transfer/land_client.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "baton/v1/kv_transfer.grpc.pb.h"
#include "common/grpc_status.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/client_callback.h"

namespace baton {
namespace {

// Connections that are kept for later handoffs.
constexpr size_t kMaxChannels = 64;

}  // namespace

// One Land stream. Lives until gRPC has reported its end.
class LandClient::Call final : public grpc::ClientBidiReactor<v1::LandRequest, v1::LandReply> {
 public:
  Call(LandClient* client, const TransferId& transfer_id, const std::shared_ptr<grpc::Channel>& channel)
      : client_(client), transfer_id_(transfer_id), stub_(v1::KvTransfer::NewStub(channel)) {}

  void Start(std::shared_ptr<Call> self) {
    self_ = std::move(self);
    stub_->async()->Land(&context_, this);
    AddHold();  // writes and reads begin outside of reactions
    StartRead(&reply_);
    StartCall();
  }

  void Write(v1::LandRequest request, Written written) {
    Outgoing outgoing{std::move(request), std::move(written)};
    {
      MutexLock lock(&mutex_);
      if (!done_) {
        queue_.push_back(std::move(outgoing));
        return WriteFirst();
      }
    }
    Refuse(outgoing);
  }

  const TransferId& transfer_id() const { return transfer_id_; }

  void ReadNext() {
    MutexLock lock(&mutex_);
    if (held_) StartRead(&reply_);
  }

  void Close() {
    context_.TryCancel();
    MutexLock lock(&mutex_);
    LetGo();
  }

 private:
  struct Outgoing {
    v1::LandRequest request;
    Written written;  // null for control messages
  };

  static void Refuse(Outgoing& outgoing) {
    if (outgoing.written != nullptr)
      std::move(outgoing.written)(absl::UnavailableError("the stream is closed"));
  }

  void OnReadDone(bool ok) override {
    if (ok) return client_->events_.on_reply(transfer_id_, std::move(reply_));
    MutexLock lock(&mutex_);
    LetGo();
  }

  void OnWriteDone(bool ok) override {
    Written written;
    {
      MutexLock lock(&mutex_);
      writing_ = false;
      // A broken stream: who waits for a write hears of it with the stream's own status, which gRPC gives
      // only after every reply that came before it was read.
      if (!ok) {
        broken_ = true;
        return;
      }
      written = std::move(queue_.front().written);
      queue_.pop_front();
      WriteFirst();
    }
    if (written != nullptr) std::move(written)(absl::OkStatus());
  }

  void OnDone(const grpc::Status& status) override {
    std::deque<Outgoing> unwritten;
    {
      MutexLock lock(&mutex_);
      done_ = true;
      unwritten.swap(queue_);
    }
    client_->events_.on_closed(transfer_id_, FromGrpcStatus(status));
    for (Outgoing& outgoing : unwritten) Refuse(outgoing);
    unwritten.clear();
    LandClient* const client = client_;
    client->OnDone(std::move(self_));
  }

  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!held_ || broken_ || writing_ || queue_.empty()) return;
    writing_ = true;
    StartWrite(&queue_.front().request);
  }

  // Nothing begins any more; gRPC may end the call.
  void LetGo() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(held_, false)) RemoveHold();
  }

  LandClient* const client_;
  const TransferId transfer_id_;
  const std::unique_ptr<v1::KvTransfer::Stub> stub_;
  grpc::ClientContext context_;
  v1::LandReply reply_;  // of the read under way
  std::shared_ptr<Call> self_;

  Mutex mutex_;
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mutex_);  // the first one is being written
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;  // a write has failed
  bool held_ ABSL_GUARDED_BY(mutex_) = true;
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
};

LandClient::LandClient(ChannelFactory channels, Events events)
    : make_channel_(std::move(channels)), events_(std::move(events)) {}

LandClient::~LandClient() {
  std::vector<std::shared_ptr<Call>> calls;
  {
    MutexLock lock(&mutex_);
    for (const auto& [id, call] : calls_) calls.push_back(call);
  }
  for (const auto& call : calls) call->Close();
  calls.clear();
  MutexLock lock(&mutex_);
  while (open_ > 0) idle_.Wait(&mutex_);
}

void LandClient::Open(const TransferId& transfer_id, const std::string& address,
                      const std::string& identity) {
  std::shared_ptr<Call> call;
  {
    MutexLock lock(&mutex_);
    call = std::make_shared<Call>(this, transfer_id, ChannelFor(address, identity));
    if (!calls_.emplace(transfer_id, call).second) return;
    ++open_;
  }
  call->Start(call);
}

void LandClient::Send(const TransferId& transfer_id, v1::LandRequest request) {
  if (const auto call = Find(transfer_id)) call->Write(std::move(request), nullptr);
}

void LandClient::WriteData(const TransferId& transfer_id, v1::LandData data, Written written) {
  const auto call = Find(transfer_id);
  if (call == nullptr) return std::move(written)(absl::UnavailableError("the stream is not open"));
  v1::LandRequest request;
  *request.mutable_data() = std::move(data);
  call->Write(std::move(request), std::move(written));
}

void LandClient::ReadNext(const TransferId& transfer_id) {
  if (const auto call = Find(transfer_id)) call->ReadNext();
}

void LandClient::Close(const TransferId& transfer_id) {
  if (const auto call = Find(transfer_id)) call->Close();
}

std::shared_ptr<LandClient::Call> LandClient::Find(const TransferId& transfer_id) {
  MutexLock lock(&mutex_);
  const auto found = calls_.find(transfer_id);
  return found == calls_.end() ? nullptr : found->second;
}

std::shared_ptr<grpc::Channel> LandClient::ChannelFor(const std::string& address,
                                                      const std::string& identity) {
  const auto found = std::find_if(channels_.begin(), channels_.end(), [&](const Connection& each) {
    return each.address == address && each.identity == identity;
  });
  if (found != channels_.end()) {
    channels_.splice(channels_.begin(), channels_, found);
  } else {
    channels_.push_front({address, identity, make_channel_(address, identity)});
    if (channels_.size() > kMaxChannels) channels_.pop_back();
  }
  return channels_.front().channel;
}

void LandClient::OnDone(std::shared_ptr<Call> call) {
  {
    MutexLock lock(&mutex_);
    calls_.erase(call->transfer_id());
  }
  // Before the destructor is told: the call holds a channel, and the last channel of a process must not go on
  // a thread of gRPC, which would then wait for itself.
  call.reset();
  MutexLock lock(&mutex_);
  if (--open_ == 0) idle_.SignalAll();
}

}  // namespace baton
