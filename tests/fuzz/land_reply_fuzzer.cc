// A KvSender whose landing and whose receiver are anybody's: a landing of any bytes is refused or followed,
// and replies, moves, ends and time in any order neither move a byte twice nor lose a block, and bring one
// end.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/check.h"
#include "engine/kv/kv_pools.h"
#include "kv_transfer/kv_sender.h"
#include "kv_transfer/landing.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/land_geometry.h"

namespace baton {
namespace {

constexpr uint32_t kPrompt = 40;

class Target {
 public:
  explicit Target(Input& input) {
    pools_ = *KvPools::Create(device_.get(), LandGeometry(), 16 << 10, 64, 16);
    KvSender::Spec spec;
    spec.transfer_id = *TransferId::FromBytes(std::string(16, 'i'));
    spec.sender_instance_id = "prefill";
    spec.landing = MakeLanding(std::string(kTicketBytes, 't'), "decode", "localhost:1", {"grpc"},
                               LandGeometry(), WantedAfter(LandGeometry(), kPrompt));
    // Fields of the input on top of those of a good landing.
    if (input.Byte() & 1) {
      v1::Landing any;
      if (any.ParseFromString(input.Bytes(input.Byte()))) spec.landing.MergeFrom(any);
    }
    spec.transport = "grpc";
    spec.prompt_tokens = kPrompt;
    spec.deadline = now_ + absl::Seconds(100);
    spec.pieces.min_bytes = 64;
    const SequenceKv kv = *pools_->Reserve(kPrompt);
    auto sender = KvSender::Create(std::move(spec), pools_.get(), PinnedKv::Of(kv));
    if (!sender.ok()) return;
    sender_ = *std::move(sender);
    Run(sender_->Start(now_));
  }

  void Step(Input& input) {
    if (sender_ == nullptr) {
      input.Bytes(SIZE_MAX);
      return;
    }
    switch (input.Byte() % 8) {
      case 0: {
        v1::LandReply reply;
        if (reply.ParseFromString(input.Bytes(input.Byte()))) Run(sender_->OnReply(reply, now_));
        return;
      }
      case 1: {
        v1::LandReply reply;
        for (int i = input.Byte() % 8; i > 0; --i) reply.mutable_take()->add_piece_ids(input.Byte() % 16);
        return Run(sender_->OnReply(reply, now_));
      }
      case 2: {
        v1::LandReply reply;
        if (input.Byte() & 1) {
          reply.mutable_opened();
        } else {
          reply.mutable_committed();
        }
        return Run(sender_->OnReply(reply, now_));
      }
      case 3:
        return Moved(input.Byte() % 4 == 1 ? absl::DataLossError("x") : absl::OkStatus());
      case 4:
        return Compute();
      case 5:
        return Run(sender_->OnClosed(absl::UnavailableError("x"), now_));
      case 6:
        now_ += absl::Seconds(input.Byte() % 16);
        return Run(sender_->OnTimer(now_));
      case 7:
        return Run(sender_->Cancel(now_));
    }
  }

  void End() {
    if (sender_ != nullptr) {
      Run(sender_->Cancel(now_));
      while (!moving_.empty()) Moved(absl::OkStatus());
      BATON_CHECK(finished_ == 1 && sender_->drained());
      sender_.reset();
    }
    BATON_CHECK(pools_->CheckAllFree().ok());
  }

 private:
  // The next part of the prompt; with the last one, its end.
  void Compute() {
    if (computed_ < kPrompt) {
      Run(sender_->OnComputed({0, 3}, {computed_, computed_ + 8}, now_));
      computed_ += 8;
    } else if (!std::exchange(prompt_done_, true)) {
      v1::LandCommit commit;
      commit.mutable_first_token()->set_id(1);
      Run(sender_->OnPromptDone(std::move(commit), now_));
    }
  }

  void Moved(const absl::Status& status) {
    if (moving_.empty()) return;
    const uint32_t piece = moving_.back();
    moving_.pop_back();
    Run(sender_->OnMoved(piece, status, now_));
  }

  void Run(const KvSender::Actions& actions) {
    for (const KvSender::Action& action : actions) {
      if (const auto* move = std::get_if<KvSender::MovePiece>(&action)) {
        uint64_t bytes = 0;
        for (const DeviceSpan& span : move->source) bytes += span.bytes;
        BATON_CHECK(bytes == move->bytes);
        BATON_CHECK(moved_.insert(move->piece.id).second);
        moving_.push_back(move->piece.id);
      } else if (std::holds_alternative<KvSender::Finished>(action)) {
        ++finished_;
      }
    }
    BATON_CHECK(finished_ <= 1);
    const absl::Status status = sender_->CheckInvariants();
    BATON_CHECK(status.ok());
    BATON_CHECK(pools_->CheckInvariants().ok());
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  std::unique_ptr<KvPools> pools_;
  std::unique_ptr<KvSender> sender_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::vector<uint32_t> moving_;
  std::set<uint32_t> moved_;
  uint32_t computed_ = 0;
  bool prompt_done_ = false;
  int finished_ = 0;
};

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  baton::Input input(data, size);
  baton::Target target(input);
  while (!input.empty()) target.Step(input);
  target.End();
  return 0;
}
