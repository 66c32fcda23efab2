#include "kv_transfer/kv_sender.h"

#include "common/protocol_version.h"
#include "common/seeded_random_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv_transfer/landing.h"

namespace baton {
namespace {

constexpr uint32_t kPrompt = 300;
const absl::Time kStart = absl::FromUnixSeconds(1000);
// 512 bytes per token and layer: 4 layers of 300 tokens are 600 KiB.
const KvGeometry kGeometry{KvType::kF16, 16, {{.layers = {0, 1, 2, 3}, .kv_heads = 2, .head_dim = 64}}};

class KvSenderTest : public testing::Test {
 protected:
  void SetUp() override {
    pools_ = *KvPools::Create(device_.get(), kGeometry, 4 << 20, 512, 128);
    spec_.transfer_id = TransferId::Mint(random_);
    spec_.sender_instance_id = "prefill";
    spec_.landing = MakeLanding(MintTicket(random_), "decode", "localhost:1", {"inproc", "grpc"}, kGeometry,
                                WantedAfter(kGeometry, kPrompt));
    spec_.transport = "grpc";
    spec_.prompt_tokens = kPrompt;
    spec_.deadline = kStart + absl::Seconds(60);
  }
  void TearDown() override {
    sender_.reset();
    EXPECT_TRUE(pools_->CheckAllFree().ok()) << pools_->CheckAllFree();
  }

  // A sender whose sequence is gone already: only its pins hold the blocks.
  void Create() {
    const SequenceKv kv = *pools_->Reserve(kPrompt);
    auto sender = KvSender::Create(spec_, pools_.get(), PinnedKv::Of(kv));
    ASSERT_TRUE(sender.ok()) << sender.status();
    sender_ = *std::move(sender);
  }

  // Runs the actions of an event: keeps what a test looks at.
  void Take(KvSender::Actions actions) {
    for (KvSender::Action& action : actions) {
      if (auto* land = std::get_if<KvSender::SendLand>(&action)) {
        for (const v1::Piece& piece : land->request.offer().pieces()) offered_.push_back(piece.id());
        sent_.push_back(std::move(land->request));
      } else if (auto* move = std::get_if<KvSender::MovePiece>(&action)) {
        uint64_t bytes = 0;
        for (const DeviceSpan& span : move->source) bytes += span.bytes;
        EXPECT_EQ(bytes, move->bytes);
        moves_.push_back(move->piece.id);
      } else if (std::holds_alternative<KvSender::CancelMoves>(action)) {
        ++cancels_;
      } else if (std::holds_alternative<KvSender::CloseLand>(action)) {
        ++closes_;
      } else if (auto* timer = std::get_if<KvSender::SetTimer>(&action)) {
        timer_ = timer->when;
      } else {
        finished_.push_back(std::get<KvSender::Finished>(action));
      }
    }
    ASSERT_TRUE(sender_->CheckInvariants().ok()) << sender_->CheckInvariants();
  }

  absl::Time At(double seconds) { return kStart + absl::Seconds(seconds); }
  void Reply(const v1::LandReply& reply, double seconds) { Take(sender_->OnReply(reply, At(seconds))); }
  void Opened(double seconds = 0) {
    v1::LandReply reply;
    reply.mutable_opened();
    Reply(reply, seconds);
  }
  void TakePieces(const std::vector<uint32_t>& ids, double seconds = 0) {
    v1::LandReply reply;
    for (const uint32_t id : ids) reply.mutable_take()->add_piece_ids(id);
    Reply(reply, seconds);
  }
  void Committed(double seconds) {
    v1::LandReply reply;
    reply.mutable_committed();
    Reply(reply, seconds);
  }
  void ComputeAll(double seconds = 0) { Take(sender_->OnComputed({0, 4}, {0, kPrompt}, At(seconds))); }
  absl::StatusCode code() const {
    return finished_.size() == 1 ? finished_[0].status.code() : absl::StatusCode::kUnknown;
  }

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  SeededRandomSource random_{1};
  std::unique_ptr<KvPools> pools_;
  KvSender::Spec spec_;
  std::unique_ptr<KvSender> sender_;

  std::vector<v1::LandRequest> sent_;
  std::vector<uint32_t> offered_;
  std::vector<uint32_t> moves_;
  std::vector<KvSender::Finished> finished_;
  int cancels_ = 0;
  int closes_ = 0;
  absl::Time timer_;
};

TEST_F(KvSenderTest, OpensOffersMovesCommitsAndFinishesOnce) {
  Create();
  Take(sender_->Start(kStart));
  ASSERT_EQ(sent_.size(), 1);
  const v1::LandOpen& open = sent_[0].open();
  EXPECT_EQ(open.protocol_version(), kProtocolVersion);
  EXPECT_EQ(open.transfer_id(), spec_.transfer_id.ToBytes());
  EXPECT_EQ(open.ticket(), spec_.landing.ticket());
  EXPECT_EQ(open.sender_instance_id(), "prefill");
  EXPECT_EQ(open.layout_id(), kGeometry.LayoutId());
  EXPECT_EQ(open.block_tokens(), 16);
  EXPECT_EQ(open.transport(), "grpc");

  Take(sender_->OnComputed({0, 2}, {0, 200}, kStart));  // 200 KiB: goes out before the peer has answered
  ASSERT_EQ(offered_.size(), 1);
  Opened();
  TakePieces({0});
  EXPECT_THAT(moves_, testing::ElementsAre(0));
  Take(sender_->OnComputed({2, 4}, {0, 200}, kStart));
  Take(sender_->OnComputed({0, 4}, {200, 300}, kStart));
  v1::LandCommit done;
  done.mutable_first_token()->set_id(7);
  Take(sender_->OnPromptDone(done, At(1)));
  const v1::LandCommit& commit = sent_.back().commit();
  EXPECT_EQ(commit.first_token().id(), 7);
  EXPECT_EQ(commit.kv_bytes(), 300 * 4 * 512);
  TakePieces({1, 2}, 1);
  for (const uint32_t id : {0, 1, 2}) Take(sender_->OnMoved(id, absl::OkStatus(), At(1)));
  EXPECT_TRUE(finished_.empty()) << "not before the peer says that it is committed";
  Committed(3);
  ASSERT_EQ(finished_.size(), 1);
  EXPECT_TRUE(finished_[0].status.ok());
  EXPECT_EQ(finished_[0].bytes, 300 * 4 * 512);
  EXPECT_EQ(finished_[0].handoff, absl::Seconds(2));
  EXPECT_EQ(finished_[0].transfer, absl::Seconds(3));
  EXPECT_TRUE(sender_->drained());
  EXPECT_EQ(closes_, 1);
  // Nothing that comes afterwards matters.
  Committed(4);
  Take(sender_->OnClosed(absl::UnavailableError("late"), At(4)));
  Take(sender_->Cancel(At(4)));
  Take(sender_->OnTimer(At(100)));
  EXPECT_EQ(finished_.size(), 1);
  EXPECT_EQ(closes_, 1);
}

TEST_F(KvSenderTest, ARequestThatBroughtOutputCommitsWithoutAToken) {
  Create();
  Take(sender_->Start(kStart));
  ComputeAll();
  Take(sender_->OnPromptDone({}, kStart));
  EXPECT_TRUE(sent_.back().has_commit());
  EXPECT_FALSE(sent_.back().commit().has_first_token());
  Take(sender_->Cancel(kStart));
}

TEST_F(KvSenderTest, PinsStayUntilTheLastMoveHasEnded) {
  Create();
  Take(sender_->Start(kStart));
  ComputeAll();
  Opened();
  TakePieces({0});
  Take(sender_->Cancel(kStart));
  EXPECT_EQ(code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(cancels_, 1);
  EXPECT_EQ(closes_, 1);
  EXPECT_FALSE(sender_->drained());
  EXPECT_GT(pools_->counts()[BlockState::kDraining], 0);
  Take(sender_->OnMoved(0, absl::CancelledError("stopped"), kStart));
  EXPECT_TRUE(sender_->drained());
  EXPECT_TRUE(pools_->CheckAllFree().ok());
  EXPECT_EQ(finished_.size(), 1);
}

TEST_F(KvSenderTest, CancelBeforeStartClosesNothing) {
  Create();
  Take(sender_->Cancel(kStart));
  EXPECT_EQ(code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(closes_, 0);
  EXPECT_TRUE(sender_->Start(kStart).empty());
}

TEST_F(KvSenderTest, AClosedStreamFailsWithThePeersStatus) {
  Create();
  Take(sender_->Start(kStart));
  Take(sender_->OnClosed(absl::DataLossError("checksum"), kStart));
  EXPECT_EQ(code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(closes_, 0);
}

TEST_F(KvSenderTest, AStreamThatEndsWellWithoutACommitIsALostPeer) {
  Create();
  Take(sender_->Start(kStart));
  Take(sender_->OnClosed(absl::OkStatus(), kStart));
  EXPECT_EQ(code(), absl::StatusCode::kUnavailable);
}

TEST_F(KvSenderTest, AFailedMoveFailsTheTransfer) {
  Create();
  Take(sender_->Start(kStart));
  ComputeAll();
  Opened();
  TakePieces({0});
  Take(sender_->OnMoved(0, absl::UnavailableError("link"), kStart));
  EXPECT_EQ(code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(closes_, 1);
}

TEST_F(KvSenderTest, BreachesOfTheProtocolByThePeer) {
  const auto breach = [this](auto script) {
    finished_.clear();
    offered_.clear();
    Create();
    Take(sender_->Start(kStart));
    ComputeAll();
    script();
    for (const uint32_t id : moves_) Take(sender_->OnMoved(id, absl::CancelledError(""), kStart));
    moves_.clear();
    return code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(breach([this] { Reply(v1::LandReply(), 0); }), invalid);
  EXPECT_EQ(breach([this] { Opened(), Opened(); }), invalid);
  EXPECT_EQ(breach([this] { TakePieces({0}); }), invalid) << "a take before opened";
  EXPECT_EQ(breach([this] { Opened(), TakePieces({99}); }), invalid);
  EXPECT_EQ(breach([this] { Opened(), TakePieces({0, 0}); }), invalid);
  EXPECT_EQ(breach([this] { Opened(), Committed(0); }), invalid) << "committed before the commit";
  EXPECT_EQ(breach([this] {
              Opened();
              Take(sender_->OnPromptDone({}, kStart));
              Committed(0);
            }),
            invalid)
      << "committed with pieces not taken";
}

TEST_F(KvSenderTest, TheDeadlineEndsIt) {
  spec_.stall_limit = absl::InfiniteDuration();
  Create();
  Take(sender_->Start(kStart));
  EXPECT_EQ(timer_, spec_.deadline);
  Take(sender_->OnTimer(spec_.deadline));
  EXPECT_EQ(code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(KvSenderTest, ASilentPeerIsLost) {
  Create();
  Take(sender_->Start(kStart));
  EXPECT_EQ(timer_, At(5));
  Opened(3);
  Take(sender_->OnTimer(At(5)));
  EXPECT_TRUE(finished_.empty()) << "it has spoken, and nothing is asked of it";
  ComputeAll(20);
  EXPECT_EQ(timer_, At(25));
  TakePieces({0}, 24);
  Take(sender_->OnTimer(At(25)));
  EXPECT_EQ(timer_, At(29));
  Take(sender_->OnTimer(At(29)));
  EXPECT_EQ(code(), absl::StatusCode::kUnavailable);
  Take(sender_->OnMoved(0, absl::CancelledError(""), At(29)));
}

TEST_F(KvSenderTest, WhatIsComputedTwiceOrNotAtAllIsAnInternalError) {
  Create();
  Take(sender_->Start(kStart));
  Take(sender_->OnComputed({0, 2}, {0, 100}, kStart));
  Take(sender_->OnComputed({1, 3}, {99, 120}, kStart));
  EXPECT_EQ(code(), absl::StatusCode::kInternal);

  finished_.clear();
  Create();
  Take(sender_->Start(kStart));
  Take(sender_->OnComputed({0, 4}, {0, kPrompt - 1}, kStart));
  Take(sender_->OnPromptDone({}, kStart));
  EXPECT_EQ(code(), absl::StatusCode::kInternal);
}

TEST_F(KvSenderTest, ALandingThatDoesNotFitIsRefusedAtOnce) {
  const auto code_of = [this] {
    return KvSender::Create(spec_, pools_.get(), PinnedKv::Of(*pools_->Reserve(kPrompt))).status().code();
  };
  spec_.landing.mutable_wanted(0)->set_token_end(kPrompt + 1);
  EXPECT_EQ(code_of(), absl::StatusCode::kInvalidArgument);
  spec_.landing.mutable_wanted(0)->set_token_end(kPrompt);
  spec_.transport = "nccl";
  EXPECT_EQ(code_of(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace baton
