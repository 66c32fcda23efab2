#include "kv_transfer/backends/grpc/grpc_sender.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/check.h"
#include "kv_transfer/backends/grpc/grpc_backend.h"

namespace baton {

GrpcSender::~GrpcSender() {
  MutexLock lock(&mutex_);
  BATON_CHECK(lines_.empty());
}

void GrpcSender::Move(PieceBuffer source, PieceDone moved) {
  const TransferId id = source.transfer_id;
  Outgoing* first = nullptr;
  {
    MutexLock lock(&mutex_);
    Line& line = lines_[id];
    line.pieces.push_back(std::make_unique<Outgoing>(std::move(source), std::move(moved)));
    if (line.writing) return;
    line.writing = true;
    first = line.pieces.front().get();
  }
  Write(id, first);
}

void GrpcSender::Write(const TransferId& transfer_id, Outgoing* piece) {
  const uint64_t size = std::min(kLandDataBytes, piece->bytes - piece->offset);
  v1::LandData data;
  data.set_piece_id(piece->piece_id);
  data.set_offset(piece->offset);
  std::string& bytes = *data.mutable_bytes();
  bytes.resize(size);
  for (uint64_t filled = 0; filled < size;) {
    const DeviceSpan part = piece->cursor.Next(size - filled);
    device_->CopyToHost(part,
                        absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()) + filled, part.bytes));
    filled += part.bytes;
  }
  piece->hash.Add(bytes);
  piece->offset += size;
  if (piece->offset == piece->bytes) data.set_checksum(piece->hash.value());
  writer_->WriteData(transfer_id, std::move(data),
                     [this, transfer_id](absl::Status status) { OnWritten(transfer_id, status); });
}

void GrpcSender::OnWritten(const TransferId& transfer_id, const absl::Status& status) {
  std::vector<std::unique_ptr<Outgoing>> ended;
  absl::Status outcome = status;
  Outgoing* next = nullptr;
  {
    MutexLock lock(&mutex_);
    const auto found = lines_.find(transfer_id);
    BATON_CHECK(found != lines_.end() && found->second.writing);
    Line& line = found->second;
    if (status.ok() && line.cancelled) outcome = absl::CancelledError("the move was cancelled");
    if (!outcome.ok()) {
      // What follows on a stream that has failed fails with it.
      for (auto& piece : line.pieces) ended.push_back(std::move(piece));
      line.pieces.clear();
    } else if (line.pieces.front()->offset == line.pieces.front()->bytes) {
      ended.push_back(std::move(line.pieces.front()));
      line.pieces.pop_front();
    }
    if (line.pieces.empty()) {
      lines_.erase(found);
    } else {
      next = line.pieces.front().get();
    }
  }
  for (auto& piece : ended) std::move(piece->moved)(outcome);
  if (next != nullptr) Write(transfer_id, next);
}

void GrpcSender::Cancel(const TransferId& transfer_id) {
  std::vector<std::unique_ptr<Outgoing>> ended;
  {
    MutexLock lock(&mutex_);
    const auto found = lines_.find(transfer_id);
    if (found == lines_.end()) return;
    Line& line = found->second;
    line.cancelled = true;
    for (size_t i = 1; i < line.pieces.size(); ++i) ended.push_back(std::move(line.pieces[i]));
    line.pieces.resize(1);
  }
  for (auto& piece : ended) std::move(piece->moved)(absl::CancelledError("the move was cancelled"));
}

}  // namespace baton
