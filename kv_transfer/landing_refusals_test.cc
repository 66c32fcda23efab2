// What no landing takes, and what a peer that sends it hears.
#include "kv_transfer/landing_table_test.h"

namespace baton {
namespace {

TEST_F(LandingTableTest, OpensThatAreRefusedLeaveTheLandingAlone) {
  AddOne();
  LandStreamId stream = 10;
  const auto refused = [&](auto change) {
    v1::LandRequest open = open_;
    change(open);
    Take(table_->OnConnected(++stream, kStart));
    Message(open, stream);
    return closed_.at(stream).code();
  };
  using R = v1::LandRequest;
  EXPECT_EQ(refused([](R& r) { r.mutable_open()->set_transfer_id("short"); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(refused([](R& r) { r.mutable_open()->mutable_transfer_id()->back() ^= 1; }),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(refused([](R& r) { r.mutable_open()->mutable_ticket()->back() ^= 1; }),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused([](R& r) { r.mutable_open()->clear_ticket(); }), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused([](R& r) { r.mutable_open()->set_sender_instance_id("other"); }),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(refused([](R& r) { r = Commit(); }), absl::StatusCode::kInvalidArgument) << "before open";
  EXPECT_EQ(refused([](R& r) { r.Clear(); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(table_->counters().refused_opens, 7);
  EXPECT_TRUE(failed_.empty());
  Opened();
  EXPECT_EQ(opened_, 1) << "the right one still gets in";
  EXPECT_EQ(refused([](R&) {}), absl::StatusCode::kPermissionDenied) << "the ticket is used";
  EXPECT_TRUE(failed_.empty());
  Take(table_->Drop(id_, kStart));
  EXPECT_EQ(refused([](R&) {}), absl::StatusCode::kNotFound);
  EXPECT_EQ(closed_.at(1).code(), absl::StatusCode::kCancelled);
}

TEST_F(LandingTableTest, ALandingIsForTheCertificateThatDecodeNamed) {
  AddOne();
  LandingSpec spec = Spec();
  spec.transfer_id = TransferId::FromBytes(std::string(16, 'x')).value();
  spec.prefill_identity = "spiffe://baton.local/prefill/a";
  v1::LandRequest open = open_;
  open.mutable_open()->set_transfer_id(spec.transfer_id.ToBytes());
  open.mutable_open()->set_ticket(spec.ticket);
  const TransferId id = spec.transfer_id;
  Take(table_->Add(std::move(spec), kStart));
  LandStreamId stream = 10;
  for (const char* identity : {"", "spiffe://baton.local/prefill/b", "spiffe://baton.local/prefill/aa"}) {
    Take(table_->OnConnected(++stream, kStart, identity));
    Message(open, stream);
    EXPECT_EQ(closed_.at(stream).code(), absl::StatusCode::kPermissionDenied) << identity;
  }
  EXPECT_EQ(opened_, 0);
  Take(table_->OnConnected(++stream, kStart, "spiffe://baton.local/prefill/a"));
  Message(open, stream);
  EXPECT_EQ(opened_, 1);
  // A landing of a plaintext deployment takes any.
  Take(table_->OnConnected(++stream, kStart, "spiffe://baton.local/prefill/b"));
  Message(open_, stream);
  EXPECT_EQ(opened_, 2);
  Take(table_->Drop(id, kStart));
  Take(table_->Drop(id_, kStart));
}

TEST_F(LandingTableTest, AnOpenThatCanNeverLandFailsTheLanding) {
  const auto failure = [this](auto change) {
    failed_.clear(), closed_.clear();
    Reset({});
    AddOne();
    change(*open_.mutable_open());
    Opened();
    EXPECT_EQ(closed_.at(1).code(), failed());
    EXPECT_EQ(failed_.at(0).sender_instance_id, "prefill");
    return failed();
  };
  EXPECT_EQ(failure([](v1::LandOpen& o) { o.set_layout_id("bf16"); }), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(failed_[0].status.message()),
              testing::AllOf(testing::HasSubstr("bf16"), testing::HasSubstr(kGeometry.LayoutId())));
  EXPECT_EQ(failure([](v1::LandOpen& o) { o.set_protocol_version(kProtocolVersion + 1); }),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(failure([](v1::LandOpen& o) { o.clear_protocol_version(); }),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(failure([](v1::LandOpen& o) { o.set_block_tokens(24); }), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failure([](v1::LandOpen& o) { o.set_block_tokens(1u << 31); }),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(failure([](v1::LandOpen& o) { o.set_transport("nccl"); }), absl::StatusCode::kInvalidArgument);
}

TEST_F(LandingTableTest, BreachesOfTheProtocolFailTheLanding) {
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(Breach([this] { Message(open_); }), invalid);
  EXPECT_EQ(Breach([this] { Message(v1::LandRequest()); }), invalid);
  EXPECT_EQ(Breach([this] { Message(Offer({})); }), invalid);
  // Pieces.
  KvPiece piece = kFirst;
  piece.tokens.end = 41;
  EXPECT_EQ(Breach([&] { Message(Offer({piece})); }), invalid) << "not wanted";
  piece = kThird;
  piece.tokens.begin = 29;
  EXPECT_EQ(Breach([&] { Message(Offer({piece})); }), invalid) << "rolled out";
  piece = kFirst;
  piece.layers.end = 3;
  EXPECT_EQ(Breach([&] { Message(Offer({piece})); }), invalid) << "no such layer";
  piece.layers = {1, 1};
  EXPECT_EQ(Breach([&] { Message(Offer({piece})); }), invalid) << "empty";
  piece = kFirst;
  piece.group = 2;
  EXPECT_EQ(Breach([&] { Message(Offer({piece})); }), invalid) << "no such group";
  piece = kFirst;
  piece.id = 1;
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Offer({piece})); }), invalid) << "offered twice";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst, kFirst})); }), invalid);
  piece = kSecond;
  piece.id = 0;
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Offer({piece})); }), invalid)
      << "an id used twice";
  piece.tokens = {23, 40};
  piece.id = 1;
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Offer({piece})); }), invalid) << "overlap";
  v1::LandRequest incomplete = Offer({kFirst});
  incomplete.mutable_offer()->mutable_pieces(0)->clear_token_begin();
  EXPECT_EQ(Breach([&] { Message(incomplete); }), invalid);
  // Data.
  EXPECT_EQ(Breach([&] { Message(Data(0, 0, 10, false)); }), invalid) << "not taken";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst, kSecond})), Message(Data(1, 0, 10, false)); }), invalid)
      << "order";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Data(0, 1, 10, false)); }), invalid) << "offset";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Data(0, 0, 0, false)); }), invalid) << "empty";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Data(0, 0, 3073, true)); }), invalid)
      << "over-long";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Data(0, 0, 3072, false)); }), invalid)
      << "no checksum";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst})), Message(Data(0, 0, 1, true)); }), invalid)
      << "early checksum";
  EXPECT_EQ(Breach([&] {
              Message(Offer({kFirst}));
              Message(Data(0, 0, 3072, true));
              Message(Data(0, 3072, 1, true));
            }),
            invalid)
      << "beyond the end";
  // Commit.
  EXPECT_EQ(Breach([&] { Message(Commit()); }), invalid) << "nothing offered";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst, kSecond})), Message(Commit()); }), invalid)
      << "not all offered";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst, kSecond, kThird})), Message(Commit(1)); }), invalid)
      << "other size";
  EXPECT_EQ(Breach([&] { Message(Offer({kFirst, kSecond, kThird})), Message(Commit()), Message(Commit()); }),
            invalid);
  EXPECT_EQ(Breach([&] {
              v1::LandRequest commit = Commit();
              commit.mutable_commit()->mutable_first_token()->clear_id();
              Message(Offer({kFirst, kSecond, kThird})), Message(commit);
            }),
            invalid);
  piece = kThird;
  piece.id = 7;
  EXPECT_EQ(
      Breach([&] { Message(Offer({kFirst, kSecond, kThird})), Message(Commit()), Message(Offer({piece})); }),
      invalid)
      << "an offer after the commit";
}

TEST_F(LandingTableTest, LimitsOfPieces) {
  Reset({.max_bytes_outstanding = 64, .max_waiting_pieces = 5});
  AddOne();
  Opened();
  for (uint32_t t = 0; t < 7 && failed_.empty(); ++t) {
    Message(Offer({{.id = t, .group = 0, .layers = {0, 1}, .tokens = {t, t + 1}}}));
  }
  EXPECT_EQ(failed(), absl::StatusCode::kResourceExhausted);
  Visible(0, absl::CancelledError(""));

  failed_.clear();
  Reset({.max_piece_bytes = 3071});
  AddOne();
  Opened();
  Message(Offer({kFirst}));
  EXPECT_EQ(failed(), absl::StatusCode::kInvalidArgument);
}

TEST_F(LandingTableTest, ATransportWithoutDataOnTheStreamTakesNone) {
  AddOne();
  open_.mutable_open()->set_transport("inproc");
  Opened();
  Message(Offer({kThird}));
  Message(Data(2, 0, 320, true));
  EXPECT_EQ(failed(), absl::StatusCode::kInvalidArgument);
  Visible(2, absl::CancelledError(""));
}

TEST_F(LandingTableTest, ALandingThatDoesNotFitItsBlocksIsRefused) {
  LandingSpec spec = Spec();
  spec.wanted[1] = {0, 41};  // 5 blocks of 8
  Take(table_->Add(std::move(spec), kStart));
  EXPECT_EQ(failed(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace baton
