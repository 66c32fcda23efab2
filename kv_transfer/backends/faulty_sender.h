#ifndef BATON_KV_TRANSFER_BACKENDS_FAULTY_SENDER_H_
#define BATON_KV_TRANSFER_BACKENDS_FAULTY_SENDER_H_

#include <set>
#include <utility>
#include <vector>

#include "kv_transfer/kv_backend.h"

namespace baton {

// Moves that go wrong before they reach a backend. For tests, on one thread.
class FaultySender final : public KvSendBackend {
 public:
  enum class Fault { kNone, kDrop, kDuplicate, kDelay };

  explicit FaultySender(KvSendBackend* backend) : backend_(backend) {}

  // What happens to moves of this piece.
  void Inject(uint32_t piece_id, Fault fault) { faults_.emplace_back(piece_id, fault); }

  void Move(PieceBuffer source, PieceDone moved) override {
    switch (FaultOf(source.piece_id)) {
      case Fault::kNone:
        return backend_->Move(std::move(source), std::move(moved));
      case Fault::kDrop:
        dropped_.push_back(std::move(moved));
        return;
      case Fault::kDuplicate:
        backend_->Move(source, std::move(moved));
        return backend_->Move(std::move(source), [](absl::Status) {});
      case Fault::kDelay:
        delayed_.emplace_back(std::move(source), std::move(moved));
        return;
    }
  }

  // Delayed moves go on, the latest first.
  void Release() {
    while (!delayed_.empty()) {
      auto [source, moved] = std::move(delayed_.back());
      delayed_.pop_back();
      backend_->Move(std::move(source), std::move(moved));
    }
  }

  void Cancel(const TransferId& transfer_id) override {
    for (PieceDone& moved : dropped_) std::move(moved)(absl::CancelledError("dropped"));
    dropped_.clear();
    backend_->Cancel(transfer_id);
  }

 private:
  Fault FaultOf(uint32_t piece_id) const {
    for (const auto& [id, fault] : faults_) {
      if (id == piece_id) return fault;
    }
    return Fault::kNone;
  }

  KvSendBackend* const backend_;
  std::vector<std::pair<uint32_t, Fault>> faults_;
  std::vector<PieceDone> dropped_;
  std::vector<std::pair<PieceBuffer, PieceDone>> delayed_;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_FAULTY_SENDER_H_
