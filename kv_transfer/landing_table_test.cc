#include "kv_transfer/landing_table_test.h"

namespace baton {
namespace {

TEST_F(LandingTableTest, LandsWhenCommittedAndVisibleInEitherOrder) {
  for (const bool commit_first : {true, false}) {
    landed_.clear(), closed_.clear(), taken_.clear(), receives_.clear(), committed_ = 0;
    Reset({});
    AddOne();
    Opened();
    EXPECT_EQ(table_->streams(), 1);
    Message(Offer({kFirst}));
    Message(Offer({kSecond}));
    Message(Offer({kThird}));
    EXPECT_THAT(taken_, testing::ElementsAre(0, 1, 2));
    EXPECT_EQ(receives_, (std::vector<KvPiece>{kFirst, kSecond, kThird}));
    if (commit_first) Message(Commit());
    for (const uint32_t id : {2, 0, 1}) {
      EXPECT_TRUE(landed_.empty());
      Visible(id);
    }
    if (!commit_first) {
      EXPECT_EQ(committed_, 0);
      Message(Commit());
    }
    ASSERT_EQ(landed_.size(), 1);
    EXPECT_EQ(landed_[0].transfer_id, id_);
    EXPECT_EQ(landed_[0].commit.first_token().id(), 9);
    EXPECT_EQ(landed_[0].bytes, kAllBytes);
    EXPECT_EQ(landed_[0].transport, "grpc");
    EXPECT_EQ(landed_[0].kv.groups(), 2);
    EXPECT_EQ(committed_, 1);
    EXPECT_TRUE(closed_.at(1).ok());
    EXPECT_EQ(table_->landings() + table_->streams() + table_->draining(), 0);
    // The decode job owns the blocks now.
    EXPECT_EQ(pools_->counts()[BlockState::kLanding],
              landed_[0].kv.table(0).size() + landed_[0].kv.table(1).size());
  }
}

TEST_F(LandingTableTest, TakesAreBoundedByTheBytesOutstanding) {
  Reset({.max_bytes_outstanding = 3100});
  AddOne();
  Opened();
  Message(Offer({kFirst}));
  Message(Offer({kSecond}));
  Message(Offer({kThird}));
  EXPECT_THAT(taken_, testing::ElementsAre(0));
  Message(Commit());
  Take(table_->OnVisible(1, 0, absl::OkStatus(), kStart));
  EXPECT_EQ(receives_.size(), 3);
  Visible(1);
  Visible(2);
  EXPECT_EQ(landed_.size(), 1);
}

TEST_F(LandingTableTest, APieceLargerThanTheBoundIsTakenAlone) {
  Reset({.max_bytes_outstanding = 10});
  AddOne();
  Opened();
  Message(Offer({kFirst}));
  Message(Offer({kSecond}));
  EXPECT_THAT(taken_, testing::ElementsAre(0));
  Visible(0);
  EXPECT_THAT(taken_, testing::ElementsAre(0, 1));
  Take(table_->Drop(id_, kStart));
  Visible(1);
}

TEST_F(LandingTableTest, DataOnTheStreamIsDeliveredInOrder) {
  AddOne();
  Opened();
  Message(Offer({kThird}));
  Message(Data(2, 0, 300, false));
  Message(Data(2, 300, 20, true));
  EXPECT_EQ(delivered_, (std::vector<Delivered>{{0, 300, false}, {300, 20, true}}));
  Visible(2);
  Take(table_->Drop(id_, kStart));
}

TEST_F(LandingTableTest, ACorruptPieceIsDataLoss) {
  AddOne();
  Opened();
  Message(Offer({kFirst, kSecond}));
  Visible(0, absl::DataLossError("checksum"));
  EXPECT_EQ(failed(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(withdrawn_, 1);
  EXPECT_EQ(table_->draining(), 1);
  Visible(1, absl::CancelledError(""));
  EXPECT_EQ(table_->draining(), 0);
}

TEST_F(LandingTableTest, BlocksDrainWhileAPieceIsBeingReceived) {
  AddOne();
  Opened();
  Message(Offer({kFirst, kSecond}));
  Visible(0);
  Take(table_->Drop(id_, kStart));
  EXPECT_TRUE(failed_.empty()) << "the owner asked for it";
  EXPECT_EQ(closed_.at(1).code(), absl::StatusCode::kCancelled);
  EXPECT_GT(pools_->counts()[BlockState::kDraining], 0);
  EXPECT_EQ(pools_->counts()[BlockState::kLanding], 0);
  // Late words on the closed stream change nothing.
  Message(Offer({kThird}));
  Message(Commit());
  Take(table_->OnClosed(1, absl::CancelledError(""), kStart));
  EXPECT_EQ(table_->counters().late_messages, 2);
  Visible(1);
  EXPECT_TRUE(pools_->CheckAllFree().ok());
  Visible(1);
  EXPECT_EQ(table_->counters().late_messages, 3);
}

TEST_F(LandingTableTest, ALostStreamFailsTheLanding) {
  AddOne();
  Opened();
  Message(Offer({kFirst}));
  Take(table_->OnClosed(1, absl::CancelledError("reset"), kStart));
  EXPECT_EQ(failed(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(failed_[0].sender_instance_id, "prefill");
  EXPECT_EQ(closed_.count(1), 0) << "it is closed already";
  Visible(0, absl::CancelledError(""));
}

TEST_F(LandingTableTest, LandingsExpireAndTombstonesToo) {
  AddOne();
  EXPECT_EQ(timer_, kStart + absl::Seconds(30));
  Opened();
  Take(table_->OnTimer(kStart + absl::Seconds(29)));
  EXPECT_TRUE(failed_.empty());
  EXPECT_EQ(timer_, kStart + absl::Seconds(30));
  Take(table_->OnTimer(kStart + absl::Seconds(30)));
  EXPECT_EQ(failed(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(table_->counters().expired, 1);
  EXPECT_EQ(table_->tombstones(), 1);
  EXPECT_EQ(timer_, kStart + absl::Seconds(90));
  Take(table_->OnTimer(kStart + absl::Seconds(90)));
  EXPECT_EQ(table_->tombstones(), 0);
  EXPECT_TRUE(table_->OnTimer(kStart + absl::Seconds(200)).empty());
}

TEST_F(LandingTableTest, StreamsThatOpenNothingAreBoundedInNumberAndTime) {
  for (LandStreamId stream = 1; stream <= 3; ++stream) Take(table_->OnConnected(stream, kStart));
  EXPECT_TRUE(closed_.empty());
  Take(table_->OnConnected(4, kStart));
  EXPECT_EQ(closed_.at(4).code(), absl::StatusCode::kResourceExhausted);
  Take(table_->OnClosed(2, absl::OkStatus(), kStart));
  Take(table_->OnTimer(kStart + absl::Seconds(5)));
  EXPECT_EQ(closed_.at(1).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(closed_.count(2), 0);
  EXPECT_EQ(closed_.at(3).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(table_->streams(), 0);
}

TEST_F(LandingTableTest, ADropBeforeTheAddIsRemembered) {
  LandingSpec spec = Spec();
  Take(table_->Drop(spec.transfer_id, kStart));
  Take(table_->Add(std::move(spec), kStart));
  EXPECT_EQ(failed(), absl::StatusCode::kCancelled);
  EXPECT_EQ(table_->landings(), 0);
}

TEST_F(LandingTableTest, ATransferIsNeverUsedTwice) {
  LandingSpec first = Spec();
  LandingSpec second = Spec();
  LandingSpec third = Spec();
  second.transfer_id = third.transfer_id = first.transfer_id;
  const TransferId id = first.transfer_id;
  Take(table_->Add(std::move(first), kStart));
  Take(table_->Add(std::move(second), kStart));
  EXPECT_EQ(failed(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(table_->landings(), 1) << "the first one stays";
  Take(table_->Drop(id, kStart));
  failed_.clear();
  Take(table_->Add(std::move(third), kStart));
  EXPECT_EQ(failed(), absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace baton
