#include "kv_transfer/backends/inproc/inproc_backend.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

// Small enough to stay in a core's cache between the two copies.
constexpr uint64_t kBounceBytes = 128 << 10;

// Copies between two lists of spans of the same total size. Neither device knows the other's memory, so bytes
// pass through the host.
void CopySpans(Device* from_device, const std::vector<DeviceSpan>& from, Device* to_device,
               const std::vector<DeviceSpan>& to) {
  std::vector<std::byte> bounce(kBounceBytes);
  size_t target = 0;
  uint64_t target_offset = 0;
  for (const DeviceSpan& source : from) {
    for (uint64_t offset = 0; offset < source.bytes;) {
      const uint64_t count =
          std::min({source.bytes - offset, to[target].bytes - target_offset, kBounceBytes});
      from_device->CopyToHost(source.subspan(offset, count), absl::MakeSpan(bounce.data(), count));
      to_device->CopyFromHost(absl::MakeConstSpan(bounce.data(), count),
                              to[target].subspan(target_offset, count));
      offset += count;
      target_offset += count;
      if (target_offset == to[target].bytes) {
        ++target;
        target_offset = 0;
      }
    }
  }
}

class InprocSender final : public KvSendBackend {
 public:
  InprocSender(InprocRendezvous* rendezvous, Device* device) : rendezvous_(rendezvous), device_(device) {}

  void Move(PieceBuffer source, PieceDone moved) override {
    const auto destination = rendezvous_->Take(source.transfer_id, source.piece_id);
    if (destination == nullptr) {
      return std::move(moved)(
          absl::UnavailableError(absl::StrCat("piece ", source.piece_id, " is not awaited")));
    }
    if (destination->buffer.bytes != source.bytes) {
      const absl::Status differs =
          absl::InvalidArgumentError(absl::StrCat("piece ", source.piece_id, ": ", source.bytes,
                                                  " bytes sent, ", destination->buffer.bytes, " awaited"));
      std::move(destination->visible)(differs);
      return std::move(moved)(differs);
    }
    CopySpans(device_, source.spans, destination->device, destination->buffer.spans);
    std::move(moved)(absl::OkStatus());
    std::move(destination->visible)(absl::OkStatus());
  }

  // A move is over when Move returns: there is never one to stop.
  void Cancel(const TransferId& transfer_id) override {}

 private:
  InprocRendezvous* const rendezvous_;
  Device* const device_;
};

class InprocReceiver final : public KvReceiveBackend {
 public:
  InprocReceiver(InprocRendezvous* rendezvous, Device* device) : rendezvous_(rendezvous), device_(device) {}

  void Receive(PieceBuffer destination, PieceDone visible) override {
    rendezvous_->Post({device_, std::move(destination), std::move(visible)});
  }

  void Deliver(const TransferId& transfer_id, uint32_t piece_id, uint64_t offset, std::string bytes,
               std::optional<uint64_t> checksum) override {
    const auto destination = rendezvous_->Take(transfer_id, piece_id);
    if (destination == nullptr) return;
    std::move(destination->visible)(absl::InvalidArgumentError("inproc: no bytes come on the stream"));
  }

  void Withdraw(const TransferId& transfer_id) override { rendezvous_->Withdraw(transfer_id); }

 private:
  InprocRendezvous* const rendezvous_;
  Device* const device_;
};

}  // namespace

void InprocRendezvous::Post(Destination destination) {
  const auto key = std::pair(destination.buffer.transfer_id, destination.buffer.piece_id);
  auto posted = std::make_unique<Destination>(std::move(destination));
  {
    MutexLock lock(&mutex_);
    if (waiting_.try_emplace(key, std::move(posted)).second) return;
  }
  std::move(posted->visible)(
      absl::AlreadyExistsError(absl::StrCat("piece ", key.second, " is awaited already")));
}

std::unique_ptr<InprocRendezvous::Destination> InprocRendezvous::Take(const TransferId& transfer_id,
                                                                      uint32_t piece_id) {
  MutexLock lock(&mutex_);
  auto node = waiting_.extract({transfer_id, piece_id});
  return node.empty() ? nullptr : std::move(node.mapped());
}

void InprocRendezvous::Withdraw(const TransferId& transfer_id) {
  std::vector<std::unique_ptr<Destination>> withdrawn;
  {
    MutexLock lock(&mutex_);
    const auto begin = waiting_.lower_bound({transfer_id, 0});
    auto end = begin;
    for (; end != waiting_.end() && end->first.first == transfer_id; ++end)
      withdrawn.push_back(std::move(end->second));
    waiting_.erase(begin, end);
  }
  for (const auto& destination : withdrawn)
    std::move(destination->visible)(absl::CancelledError("withdrawn"));
}

KvBackendKind InprocBackend(InprocRendezvous* rendezvous) {
  return {.name = "inproc",
          .data_on_stream = false,
          .make_sender = [rendezvous](Device* device, LandDataWriter*) -> std::unique_ptr<KvSendBackend> {
            return std::make_unique<InprocSender>(rendezvous, device);
          },
          .make_receiver = [rendezvous](Device* device) -> std::unique_ptr<KvReceiveBackend> {
            return std::make_unique<InprocReceiver>(rendezvous, device);
          }};
}

}  // namespace baton
