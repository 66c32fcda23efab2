#include "kv_transfer/landing_table.h"

#include "common/protocol_version.h"
#include "common/seeded_random_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv_transfer/landing.h"

namespace baton {
namespace {

constexpr uint32_t kPrompt = 40;
const absl::Time kStart = absl::FromUnixSeconds(1000);
// 64 bytes per token and layer in the first group, 32 in the second.
const KvGeometry kGeometry{KvType::kF16,
                           8,
                           {{.layers = {0, 1}, .kv_heads = 1, .head_dim = 16},
                            {.layers = {2}, .kv_heads = 1, .head_dim = 8, .window_tokens = 11}}};

v1::LandRequest Offer(std::vector<KvPiece> pieces) {
  v1::LandRequest request;
  request.mutable_offer();
  for (const KvPiece& piece : pieces) {
    v1::Piece* out = request.mutable_offer()->add_pieces();
    out->set_id(piece.id);
    out->set_group(piece.group);
    out->set_layer_begin(piece.layers.begin);
    out->set_layer_end(piece.layers.end);
    out->set_token_begin(piece.tokens.begin);
    out->set_token_end(piece.tokens.end);
  }
  return request;
}

v1::LandRequest Data(uint32_t piece, uint64_t offset, size_t bytes, bool checksum) {
  v1::LandRequest request;
  request.mutable_data()->set_piece_id(piece);
  request.mutable_data()->set_offset(offset);
  request.mutable_data()->set_bytes(std::string(bytes, 'x'));
  if (checksum) request.mutable_data()->set_checksum(5);
  return request;
}

// Everything that is wanted: 2 layers x 40 tokens, 1 layer x tokens [30, 40).
const KvPiece kFirst{.id = 0, .group = 0, .layers = {0, 2}, .tokens = {0, 24}};    // 3072 bytes
const KvPiece kSecond{.id = 1, .group = 0, .layers = {0, 2}, .tokens = {24, 40}};  // 2048 bytes
const KvPiece kThird{.id = 2, .group = 1, .layers = {0, 1}, .tokens = {30, 40}};   // 320 bytes
constexpr double kAllBytes = 3072 + 2048 + 320;

v1::LandRequest Commit(double bytes = kAllBytes) {
  v1::LandRequest request;
  request.mutable_commit()->set_kv_bytes(bytes);
  request.mutable_commit()->mutable_first_token()->set_id(9);
  return request;
}

class LandingTableTest : public testing::Test {
 protected:
  void SetUp() override {
    pools_ = *KvPools::Create(device_.get(), kGeometry, 64 << 10, 128, 16);
    Reset({});
  }
  void TearDown() override {
    table_.reset();
    landed_.clear();
    EXPECT_TRUE(pools_->CheckAllFree().ok()) << pools_->CheckAllFree();
  }

  void Reset(ReceiverLimits limits) {
    LandingTable::Options options{.transports = {{"grpc", true}, {"inproc", false}}, .receiver = limits};
    options.max_unopened_streams = 3;
    table_ = std::make_unique<LandingTable>(options, pools_.get());
  }

  LandingSpec Spec() {
    LandingSpec spec;
    spec.transfer_id = TransferId::Mint(random_);
    spec.ticket = MintTicket(random_);
    spec.prefill_instance_id = "prefill";
    spec.kv = *pools_->Reserve(kPrompt + 20);
    spec.kv.BeginLanding();
    spec.wanted = WantedAfter(kGeometry, kPrompt);
    spec.expires = kStart + absl::Seconds(30);
    return spec;
  }
  // Adds a landing; open_ opens it.
  void AddOne() {
    LandingSpec spec = Spec();
    id_ = spec.transfer_id;
    v1::LandOpen* open = open_.mutable_open();
    open->set_protocol_version(kProtocolVersion);
    open->set_transfer_id(id_.ToBytes());
    open->set_ticket(spec.ticket);
    open->set_sender_instance_id("prefill");
    open->set_layout_id(kGeometry.LayoutId());
    open->set_block_tokens(16);
    open->set_transport("grpc");
    Take(table_->Add(std::move(spec), kStart));
  }
  void Opened(LandStreamId stream = 1) {
    Take(table_->OnConnected(stream, kStart));
    Message(open_, stream);
  }

  void Take(landing::Actions actions) {
    for (landing::Action& action : actions) {
      if (auto* reply = std::get_if<landing::SendReply>(&action)) {
        if (reply->reply.has_opened()) ++opened_;
        if (reply->reply.has_committed()) ++committed_;
        for (const uint32_t id : reply->reply.take().piece_ids()) {
          EXPECT_THAT(receives_, testing::Contains(testing::Field(&KvPiece::id, id)))
              << "the destination is posted before it is told";
          taken_.push_back(id);
        }
      } else if (auto* receive = std::get_if<landing::ReceivePiece>(&action)) {
        uint64_t bytes = 0;
        for (const DeviceSpan& span : receive->destination) bytes += span.bytes;
        EXPECT_EQ(bytes, receive->bytes);
        receives_.push_back(receive->piece);
      } else if (auto* data = std::get_if<landing::DeliverData>(&action)) {
        delivered_.push_back({data->offset, data->bytes.size(), data->last});
      } else if (std::holds_alternative<landing::WithdrawPieces>(action)) {
        ++withdrawn_;
      } else if (auto* close = std::get_if<landing::CloseStream>(&action)) {
        closed_[close->stream] = close->status;
      } else if (auto* landed = std::get_if<landing::Landed>(&action)) {
        landed_.push_back(std::move(*landed));
      } else if (auto* failed = std::get_if<landing::LandingFailed>(&action)) {
        failed_.push_back(std::move(*failed));
      } else {
        timer_ = std::get<landing::SetTimer>(action).when;
      }
    }
    ASSERT_TRUE(table_->CheckInvariants().ok()) << table_->CheckInvariants();
    ASSERT_TRUE(pools_->CheckInvariants().ok());
  }
  void Message(v1::LandRequest request, LandStreamId stream = 1) {
    Take(table_->OnMessage(stream, std::move(request), kStart));
  }
  void Visible(uint32_t piece, absl::Status status = absl::OkStatus()) {
    Take(table_->OnVisible(1, piece, status, kStart));
  }
  absl::StatusCode failed() const {
    return failed_.size() == 1 ? failed_[0].status.code() : absl::StatusCode::kUnknown;
  }
  // What the first landing of a fresh table fails with, when `script` runs after its open.
  template <typename Script>
  absl::StatusCode Breach(Script script) {
    failed_.clear(), closed_.clear(), taken_.clear(), receives_.clear();
    Reset({});
    AddOne();
    Opened();
    script();
    EXPECT_EQ(closed_[1].code(), failed());
    for (const KvPiece& piece : receives_) Visible(piece.id, absl::CancelledError(""));
    EXPECT_EQ(table_->draining(), 0);
    EXPECT_TRUE(pools_->CheckAllFree().ok());
    return failed();
  }

  struct Delivered {
    uint64_t offset;
    size_t bytes;
    bool last;
    bool operator==(const Delivered&) const = default;
  };

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  SeededRandomSource random_{1};
  std::unique_ptr<KvPools> pools_;
  std::unique_ptr<LandingTable> table_;
  TransferId id_;
  v1::LandRequest open_;

  int opened_ = 0;
  int committed_ = 0;
  int withdrawn_ = 0;
  std::vector<uint32_t> taken_;
  std::vector<KvPiece> receives_;
  std::vector<Delivered> delivered_;
  std::map<LandStreamId, absl::Status> closed_;
  std::vector<landing::Landed> landed_;
  std::vector<landing::LandingFailed> failed_;
  absl::Time timer_;
};

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

TEST_F(LandingTableTest, ALandingThatDoesNotFitItsBlocksIsRefused) {
  LandingSpec spec = Spec();
  spec.wanted[1] = {0, 41};  // 5 blocks of 8
  Take(table_->Add(std::move(spec), kStart));
  EXPECT_EQ(failed(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace baton
