#include "kv_transfer/backends/grpc/grpc_backend.h"

#include <deque>

#include "kv_transfer/backends/contract_test.h"
#include "kv_transfer/backends/grpc/piece_hash.h"

namespace baton {
namespace {

// A Land stream that is a queue: Settle carries its messages over, one write in flight per transfer.
class LoopbackPair final : public BackendPair, public LandDataWriter {
 public:
  explicit LoopbackPair(Device* device)
      : sender_(GrpcBackend().make_sender(device, this)), receiver_(GrpcBackend().make_receiver(device)) {}
  ~LoopbackPair() override { Settle(); }

  void WriteData(const TransferId& transfer_id, v1::LandData data, Written written) override {
    queue_.push_back({transfer_id, std::move(data), std::move(written)});
  }

  KvSendBackend& sender() override { return *sender_; }
  KvReceiveBackend& receiver() override { return *receiver_; }
  void Settle() override {
    while (!queue_.empty()) Carry(&v1::LandData::CheckInitialized);
  }
  // Carries the first message over, after `change`.
  template <typename Change>
  void Carry(Change change) {
    Message message = std::move(queue_.front());
    queue_.pop_front();
    std::invoke(change, message.data);
    Deliver(message.transfer_id, message.data);
    std::move(message.written)(absl::OkStatus());
  }
  void Deliver(const TransferId& id, const v1::LandData& data) {
    receiver_->Deliver(id, data.piece_id(), data.offset(), data.bytes(),
                       data.has_checksum() ? std::optional<uint64_t>(data.checksum()) : std::nullopt);
  }
  // The stream breaks.
  void Break() {
    while (!queue_.empty()) {
      Written written = std::move(queue_.front().written);
      queue_.pop_front();
      std::move(written)(absl::UnavailableError("the stream is gone"));
    }
  }
  const v1::LandData& next() const { return queue_.front().data; }
  size_t queued() const { return queue_.size(); }

 private:
  struct Message {
    TransferId transfer_id;
    v1::LandData data;
    Written written;
  };

  std::deque<Message> queue_;
  const std::unique_ptr<KvSendBackend> sender_;
  const std::unique_ptr<KvReceiveBackend> receiver_;
};

INSTANTIATE_TEST_SUITE_P(Grpc, BackendContractTest,
                         testing::Values(BackendUnderTest{
                             "grpc", [](Device* device) { return std::make_unique<LoopbackPair>(device); }}));

class GrpcBackendTest : public testing::Test {
 protected:
  static constexpr uint64_t kBytes = 2 * kLandDataBytes + 100;

  void SetUp() override {
    source_ = *device_->Allocate(2 * kBytes);
    target_ = *device_->Allocate(2 * kBytes);
    for (uint64_t i = 0; i < 2 * kBytes; ++i)
      source_.span().data[i] = static_cast<std::byte>(i * 7 + i / 251);
    for (uint32_t piece : {0, 1}) {
      pair_.receiver().Receive({id_, piece, kBytes, {target_.span().subspan(piece * kBytes, kBytes)}},
                               [this, piece](absl::Status s) { visible_[piece] = s; });
    }
    for (uint32_t piece : {0, 1}) {
      pair_.sender().Move({id_, piece, kBytes, {source_.span().subspan(piece * kBytes, kBytes)}},
                          [this, piece](absl::Status s) { moved_[piece] = s; });
    }
  }
  void TearDown() override { pair_.receiver().Withdraw(id_); }

  static void Unchanged(v1::LandData&) {}

  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  const TransferId id_;
  DeviceBuffer source_;
  DeviceBuffer target_;
  LoopbackPair pair_{device_.get()};
  absl::Status visible_[2] = {absl::UnknownError(""), absl::UnknownError("")};
  absl::Status moved_[2] = {absl::UnknownError(""), absl::UnknownError("")};
};

TEST_F(GrpcBackendTest, MessagesAreBoundedAndOneIsOnItsWay) {
  PieceHash hash;
  for (const uint64_t size : {kLandDataBytes, kLandDataBytes, uint64_t{100}}) {
    ASSERT_EQ(pair_.queued(), 1);
    EXPECT_EQ(pair_.next().piece_id(), 0);
    EXPECT_EQ(pair_.next().bytes().size(), size);
    EXPECT_EQ(pair_.next().has_checksum(), size == 100);
    hash.Add(pair_.next().bytes());
    EXPECT_TRUE(size != 100 || pair_.next().checksum() == hash.value());
    pair_.Carry(Unchanged);
  }
  EXPECT_TRUE(visible_[0].ok());
  EXPECT_EQ(pair_.next().piece_id(), 1);
}

TEST_F(GrpcBackendTest, TheChecksumIsXxh3OfThePiece) {
  // A published value: XXH3-64 of "abc", seed 0.
  PieceHash hash;
  hash.Add("a");
  hash.Add("bc");
  EXPECT_EQ(hash.value(), 0x78af5f94892f3950);
}

TEST_F(GrpcBackendTest, ACorruptByteIsDataLoss) {
  pair_.Carry(Unchanged);
  pair_.Carry([](v1::LandData& data) { (*data.mutable_bytes())[17] ^= 1; });
  pair_.Carry(Unchanged);
  EXPECT_EQ(visible_[0].code(), absl::StatusCode::kDataLoss);
  pair_.Settle();
  EXPECT_TRUE(visible_[1].ok());
}

TEST_F(GrpcBackendTest, LostRepeatedAndReorderedMessagesEndThePiece) {
  const v1::LandData first = pair_.next();
  pair_.Carry(Unchanged);
  pair_.Deliver(id_, first);  // repeated
  EXPECT_EQ(visible_[0].code(), absl::StatusCode::kInvalidArgument);
  pair_.Carry(Unchanged);
  pair_.Carry(Unchanged);
  pair_.Carry(Unchanged);                                       // first of piece 1
  pair_.Carry([](v1::LandData& data) { data.set_offset(0); });  // out of order
  EXPECT_EQ(visible_[1].code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(GrpcBackendTest, ABrokenStreamFailsEveryPieceOfIt) {
  pair_.Carry(Unchanged);
  pair_.Break();
  EXPECT_EQ(moved_[0].code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(moved_[1].code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcBackendTest, CancelWaitsForTheMessageOnItsWay) {
  pair_.sender().Cancel(id_);
  EXPECT_EQ(moved_[1].code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(moved_[0].code(), absl::StatusCode::kUnknown) << "still being read by the stream";
  pair_.Carry(Unchanged);
  EXPECT_EQ(moved_[0].code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace baton
