#include "kv_transfer/backends/grpc/grpc_receiver.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace baton {

GrpcReceiver::~GrpcReceiver() {
  MutexLock lock(&mutex_);
  BATON_CHECK(incoming_.empty());
}

void GrpcReceiver::Receive(PieceBuffer destination, PieceDone visible) {
  const auto key = std::pair(destination.transfer_id, destination.piece_id);
  auto piece = std::make_unique<Incoming>(std::move(destination), std::move(visible));
  {
    MutexLock lock(&mutex_);
    if (incoming_.try_emplace(key, std::move(piece)).second) return;
  }
  std::move(piece->visible)(
      absl::AlreadyExistsError(absl::StrCat("piece ", key.second, " is awaited already")));
}

void GrpcReceiver::Deliver(const TransferId& transfer_id, uint32_t piece_id, uint64_t offset,
                           std::string bytes, std::optional<uint64_t> checksum) {
  std::unique_ptr<Incoming> ended;
  std::optional<absl::Status> outcome;
  {
    MutexLock lock(&mutex_);
    const auto found = incoming_.find({transfer_id, piece_id});
    if (found == incoming_.end()) return;
    outcome = Write(found->second.get(), offset, bytes, checksum);
    if (!outcome.has_value()) return;
    ended = std::move(found->second);
    incoming_.erase(found);
  }
  std::move(ended->visible)(*outcome);
}

std::optional<absl::Status> GrpcReceiver::Write(Incoming* piece, uint64_t offset, const std::string& bytes,
                                                std::optional<uint64_t> checksum) {
  if (offset != piece->offset || bytes.size() > piece->bytes - piece->offset) {
    return absl::InvalidArgumentError(absl::StrCat(bytes.size(), " bytes at offset ", offset, " of ",
                                                   piece->bytes, ", next is ", piece->offset));
  }
  piece->hash.Add(bytes);
  for (size_t written = 0; written < bytes.size();) {
    const DeviceSpan part = piece->cursor.Next(bytes.size() - written);
    device_->CopyFromHost(
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(bytes.data()) + written, part.bytes), part);
    written += part.bytes;
  }
  piece->offset += bytes.size();
  if (piece->offset < piece->bytes) return std::nullopt;
  if (!checksum.has_value()) return absl::InvalidArgumentError("a piece ended without a checksum");
  if (*checksum != piece->hash.value()) return absl::DataLossError("the checksum of a piece of KV differs");
  return absl::OkStatus();
}

void GrpcReceiver::Withdraw(const TransferId& transfer_id) {
  std::vector<std::unique_ptr<Incoming>> withdrawn;
  {
    MutexLock lock(&mutex_);
    const auto begin = incoming_.lower_bound({transfer_id, 0});
    auto end = begin;
    for (; end != incoming_.end() && end->first.first == transfer_id; ++end)
      withdrawn.push_back(std::move(end->second));
    incoming_.erase(begin, end);
  }
  for (const auto& piece : withdrawn) std::move(piece->visible)(absl::CancelledError("withdrawn"));
}

}  // namespace baton
