#ifndef BATON_KV_TRANSFER_LANDING_TABLE_TEST_H_
#define BATON_KV_TRANSFER_LANDING_TABLE_TEST_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/protocol_version.h"
#include "common/seeded_random_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kv_transfer/landing.h"
#include "kv_transfer/landing_table.h"

namespace baton {

inline constexpr uint32_t kPrompt = 40;
inline const absl::Time kStart = absl::FromUnixSeconds(1000);
// 64 bytes per token and layer in the first group, 32 in the second.
inline const KvGeometry kGeometry{KvType::kF16,
                                  8,
                                  {{.layers = {0, 1}, .kv_heads = 1, .head_dim = 16},
                                   {.layers = {2}, .kv_heads = 1, .head_dim = 8, .window_tokens = 11}}};

inline v1::LandRequest Offer(std::vector<KvPiece> pieces) {
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

inline v1::LandRequest Data(uint32_t piece, uint64_t offset, size_t bytes, bool checksum) {
  v1::LandRequest request;
  request.mutable_data()->set_piece_id(piece);
  request.mutable_data()->set_offset(offset);
  request.mutable_data()->set_bytes(std::string(bytes, 'x'));
  if (checksum) request.mutable_data()->set_checksum(5);
  return request;
}

// Everything that is wanted: 2 layers x 40 tokens, 1 layer x tokens [30, 40).
inline const KvPiece kFirst{.id = 0, .group = 0, .layers = {0, 2}, .tokens = {0, 24}};    // 3072 bytes
inline const KvPiece kSecond{.id = 1, .group = 0, .layers = {0, 2}, .tokens = {24, 40}};  // 2048 bytes
inline const KvPiece kThird{.id = 2, .group = 1, .layers = {0, 1}, .tokens = {30, 40}};   // 320 bytes
inline constexpr double kAllBytes = 3072 + 2048 + 320;

inline v1::LandRequest Commit(double bytes = kAllBytes) {
  v1::LandRequest request;
  request.mutable_commit()->set_kv_bytes(bytes);
  request.mutable_commit()->mutable_first_token()->set_id(9);
  return request;
}

// A table whose events are brought by hand; what it asks for is kept.
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

}  // namespace baton

#endif  // BATON_KV_TRANSFER_LANDING_TABLE_TEST_H_
