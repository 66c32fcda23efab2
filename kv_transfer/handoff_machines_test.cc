// The sender and the receiver together, over a network that a test owns: every message in order on its
// stream, everything else in any order, a failure at any point.

#include <cstring>
#include <deque>
#include <functional>
#include <random>

#include "common/seeded_random_source.h"
#include "gtest/gtest.h"
#include "kv_transfer/kv_sender.h"
#include "kv_transfer/landing.h"
#include "kv_transfer/landing_table.h"
#include "kv_transfer/pool_filler.h"

namespace baton {
namespace {

constexpr LandStreamId kStream = 5;
constexpr uint32_t kPrompt = 50;
constexpr uint32_t kLayers = 4;
const absl::Time kNow = absl::FromUnixSeconds(1000);

KvGeometry Geometry(uint32_t block_tokens) {
  return {KvType::kF32,
          block_tokens,
          {{.layers = {0, 1, 3}, .kv_heads = 2, .head_dim = 4},
           {.layers = {2}, .kv_heads = 1, .head_dim = 4, .window_tokens = 20}}};
}

enum class Fault { kNone, kCancel, kDrop, kLostStream, kFailedMove, kCorrupt, kExpire };

// One handoff in one thread. Events wait in queues; the random source picks the queue whose first event comes
// next.
class World {
 public:
  World(uint32_t seed, uint32_t prefill_block, uint32_t decode_block) : random_(seed), ids_(seed) {
    prefill_ = *KvPools::Create(device_.get(), Geometry(prefill_block), 256 << 10, 64, 16);
    decode_ = *KvPools::Create(device_.get(), Geometry(decode_block), 256 << 10, 128, 8);
    LandingTable::Options options{.transports = {{"sim", false}}};
    options.receiver.max_bytes_outstanding = 1000;  // several takes
    table_ = std::make_unique<LandingTable>(options, decode_.get());
    wanted_ = WantedAfter(prefill_->geometry(), kPrompt);
    Begin();
  }

  // Runs until nothing is left to do, with `fault` before event number `at`. Returns the number of events.
  int Run(Fault fault, int at) {
    int events = 0;
    while (true) {
      if (events == at) Inject(fault);
      std::vector<std::deque<std::function<void()>>*> ready;
      for (auto* queue : {&compute_, &to_table_, &to_sender_, &moves_}) {
        if (!queue->empty()) ready.push_back(queue);
      }
      if (ready.empty()) return events;
      auto* queue = ready[random_() % ready.size()];
      // Moves end in any order, messages and steps in theirs.
      const size_t pick = queue == &moves_ ? random_() % queue->size() : 0;
      const auto event = std::move((*queue)[pick]);
      queue->erase(queue->begin() + pick);
      event();
      ++events;
      Check();
    }
  }

  // Whatever happened, both sides have ended, once, and the blocks are where they belong.
  void ExpectSettled(Fault fault) {
    // A landing that nobody came to open ends by its own time.
    OnTable(table_->OnTimer(kNow + absl::Seconds(60)));
    ASSERT_EQ(finished_.size(), 1);
    ASSERT_TRUE(sender_->drained());
    ASSERT_LE(landed_.size() + failed_.size(), 1);
    ASSERT_EQ(table_->landings() + table_->streams() + table_->draining(), 0);
    ASSERT_TRUE(!finished_[0].status.ok() || landed_.size() == 1) << "committed without a landing";
    if (!landed_.empty()) {
      const PoolFiller landed(decode_.get(), &landed_[0].kv);
      for (uint32_t g = 0; g < wanted_.size(); ++g) ASSERT_EQ(landed.Differing(g, wanted_[g], 77), 0);
      ASSERT_EQ(landed_[0].commit.first_token().id(), 3);
    } else if (fault != Fault::kDrop) {
      ASSERT_EQ(failed_.size(), 1);
    }
    landed_.clear();
    ASSERT_TRUE(decode_->CheckAllFree().ok()) << decode_->CheckAllFree();
    ASSERT_TRUE(prefill_->CheckAllFree().ok()) << prefill_->CheckAllFree();
  }

  const std::vector<KvSender::Finished>& finished() const { return finished_; }
  const std::vector<landing::LandingFailed>& failed() const { return failed_; }
  bool landed() const { return !landed_.empty(); }

 private:
  void Begin() {
    SequenceKv kv = *prefill_->Reserve(kPrompt);
    PoolFiller filler(prefill_.get(), &kv);
    for (uint32_t g = 0; g < wanted_.size(); ++g) filler.Fill(g, wanted_[g], 77);

    LandingSpec landing;
    landing.transfer_id = id_ = TransferId::Mint(ids_);
    landing.ticket = MintTicket(ids_);
    landing.prefill_instance_id = "p";
    landing.kv = *decode_->Reserve(kPrompt + 10);
    landing.kv.BeginLanding();
    landing.wanted = wanted_;
    landing.expires = kNow + absl::Seconds(60);
    KvSender::Spec spec{.transfer_id = id_, .sender_instance_id = "p"};
    spec.landing = MakeLanding(landing.ticket, "d", "a:1", {"sim"}, decode_->geometry(), wanted_);
    spec.transport = "sim";
    spec.prompt_tokens = kPrompt;
    spec.deadline = kNow + absl::Seconds(60);
    OnTable(table_->Add(std::move(landing), kNow));
    sender_ = *KvSender::Create(std::move(spec), prefill_.get(), PinnedKv::Of(kv));

    compute_.push_back([this] { OnSender(sender_->Start(kNow)); });
    for (uint32_t begin = 0; begin < kPrompt;) {
      const uint32_t end = std::min<uint32_t>(kPrompt, begin + 1 + random_() % 16);
      for (uint32_t layer = 0; layer < kLayers; layer += 2) {
        compute_.push_back(
            [=, this] { OnSender(sender_->OnComputed({layer, layer + 2}, {begin, end}, kNow)); });
      }
      begin = end;
    }
    compute_.push_back([this] {
      v1::LandCommit commit;
      commit.mutable_first_token()->set_id(3);
      OnSender(sender_->OnPromptDone(commit, kNow));
    });
  }

  void OnSender(KvSender::Actions actions) {
    for (KvSender::Action& action : actions) {
      if (auto* land = std::get_if<KvSender::SendLand>(&action)) {
        if (land->request.has_open()) {
          to_table_.push_back([this] { OnTable(table_->OnConnected(kStream, kNow)); });
        }
        to_table_.push_back([this, r = land->request] { OnTable(table_->OnMessage(kStream, r, kNow)); });
      } else if (auto* move = std::get_if<KvSender::MovePiece>(&action)) {
        moves_.push_back([this, move = *move] { Copy(move); });
      } else if (std::holds_alternative<KvSender::CancelMoves>(action)) {
        cancelled_ = true;
      } else if (std::holds_alternative<KvSender::CloseLand>(action)) {
        to_table_.push_back(
            [this] { OnTable(table_->OnClosed(kStream, absl::CancelledError("peer"), kNow)); });
      } else if (auto* finished = std::get_if<KvSender::Finished>(&action)) {
        finished_.push_back(*finished);
      }
    }
  }

  void OnTable(landing::Actions actions) {
    for (landing::Action& action : actions) {
      if (auto* reply = std::get_if<landing::SendReply>(&action)) {
        to_sender_.push_back([this, r = reply->reply] { OnSender(sender_->OnReply(r, kNow)); });
      } else if (auto* receive = std::get_if<landing::ReceivePiece>(&action)) {
        posted_[receive->piece.id] = receive->destination;
      } else if (std::holds_alternative<landing::WithdrawPieces>(action)) {
        // What is posted and not in a move's hands ends at once; the moves in flight find nothing to write
        // to.
        for (const auto& [id, spans] : posted_) {
          moves_.push_back([this, id = id] {
            OnTable(table_->OnVisible(kStream, id, absl::CancelledError("withdrawn"), kNow));
          });
        }
        posted_.clear();
      } else if (auto* close = std::get_if<landing::CloseStream>(&action)) {
        to_sender_.push_back([this, s = close->status] { OnSender(sender_->OnClosed(s, kNow)); });
      } else if (auto* landed = std::get_if<landing::Landed>(&action)) {
        landed_.push_back(std::move(*landed));
      } else if (auto* failed = std::get_if<landing::LandingFailed>(&action)) {
        failed_.push_back(std::move(*failed));
      }
    }
  }

  void Copy(const KvSender::MovePiece& move) {
    const auto target = posted_.find(move.piece.id);
    if (cancelled_ || broken_ || target == posted_.end()) {
      OnSender(sender_->OnMoved(move.piece.id, absl::UnavailableError("no way to move it"), kNow));
      return;
    }
    std::vector<std::byte> bytes;
    for (const DeviceSpan& span : move.source) bytes.insert(bytes.end(), span.data, span.data + span.bytes);
    size_t offset = 0;
    for (const DeviceSpan& span : target->second) {
      std::memcpy(span.data, bytes.data() + offset, span.bytes);
      offset += span.bytes;
    }
    ASSERT_EQ(offset, bytes.size());
    posted_.erase(target);
    const absl::Status status =
        std::exchange(corrupt_, false) ? absl::DataLossError("checksum") : absl::OkStatus();
    OnSender(sender_->OnMoved(move.piece.id, absl::OkStatus(), kNow));
    moves_.push_back(
        [this, id = move.piece.id, status] { OnTable(table_->OnVisible(kStream, id, status, kNow)); });
  }

  void Inject(Fault fault) {
    switch (fault) {
      case Fault::kNone:
        break;
      case Fault::kCancel:
        compute_.clear();
        OnSender(sender_->Cancel(kNow));
        break;
      case Fault::kDrop:
        OnTable(table_->Drop(id_, kNow));
        break;
      case Fault::kLostStream:
        compute_.push_front([this] { OnSender(sender_->OnClosed(absl::UnavailableError("reset"), kNow)); });
        to_table_.clear();
        to_table_.push_back(
            [this] { OnTable(table_->OnClosed(kStream, absl::UnavailableError("reset"), kNow)); });
        break;
      case Fault::kFailedMove:
        broken_ = true;
        break;
      case Fault::kCorrupt:
        corrupt_ = true;
        break;
      case Fault::kExpire:
        OnTable(table_->OnTimer(kNow + absl::Seconds(60)));
        break;
    }
  }

  void Check() {
    ASSERT_TRUE(table_->CheckInvariants().ok()) << table_->CheckInvariants();
    ASSERT_TRUE(sender_->CheckInvariants().ok()) << sender_->CheckInvariants();
    ASSERT_TRUE(prefill_->CheckInvariants().ok());
    ASSERT_TRUE(decode_->CheckInvariants().ok());
  }

  std::mt19937 random_;
  SeededRandomSource ids_;
  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  std::unique_ptr<KvPools> prefill_;
  std::unique_ptr<KvPools> decode_;
  std::vector<TokenRange> wanted_;
  TransferId id_;
  std::unique_ptr<LandingTable> table_;
  std::unique_ptr<KvSender> sender_;

  std::deque<std::function<void()>> compute_;
  std::deque<std::function<void()>> to_table_;
  std::deque<std::function<void()>> to_sender_;
  std::deque<std::function<void()>> moves_;
  std::map<uint32_t, std::vector<DeviceSpan>> posted_;
  bool cancelled_ = false;
  bool broken_ = false;
  bool corrupt_ = false;

  std::vector<KvSender::Finished> finished_;
  std::vector<landing::Landed> landed_;
  std::vector<landing::LandingFailed> failed_;
};

TEST(HandoffMachines, EveryOrderOfEventsLandsTheSameBytes) {
  const uint32_t blocks[] = {8, 16, 32};
  for (uint32_t seed = 0; seed < 90; ++seed) {
    World world(seed, blocks[seed % 3], blocks[seed / 3 % 3]);
    world.Run(Fault::kNone, -1);
    ASSERT_EQ(world.finished().size(), 1);
    EXPECT_TRUE(world.finished()[0].status.ok()) << world.finished()[0].status;
    EXPECT_TRUE(world.landed());
    world.ExpectSettled(Fault::kNone);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

class AtEveryPhase : public testing::TestWithParam<Fault> {};

TEST_P(AtEveryPhase, BothSidesEndAndNoBlockIsLost) {
  for (uint32_t seed = 0; seed < 4; ++seed) {
    const int events = World(seed, 16, 8).Run(Fault::kNone, -1);
    for (int at = 0; at <= events; ++at) {
      World world(seed, 16, 8);
      world.Run(GetParam(), at);
      world.ExpectSettled(GetParam());
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", event " << at << " of " << events;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, AtEveryPhase,
                         testing::Values(Fault::kCancel, Fault::kDrop, Fault::kLostStream, Fault::kFailedMove,
                                         Fault::kCorrupt, Fault::kExpire));

}  // namespace
}  // namespace baton
