#include "kv_transfer/backends/contract_test.h"

#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "common/seeded_random_source.h"
#include "common/transfer_id.h"
#include "kv_transfer/backends/faulty_sender.h"

namespace baton {
namespace {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(BackendContractTest);

constexpr uint64_t kPieceBytes = (2 << 20) + 4096;  // more than one message of any backend
constexpr uint32_t kPieces = 3;

// One transfer of kPieces pieces, in memory that starts as noise here and zeros there, in different spans on
// the two sides.
class Transfer {
 public:
  Transfer(const BackendUnderTest& backend, uint32_t seed) : random_(seed), ids_(seed) {
    id_ = TransferId::Mint(ids_);
    source_ = *device_->Allocate(kPieces * kPieceBytes);
    target_ = *device_->Allocate(kPieces * kPieceBytes);
    std::vector<uint64_t> noise(kPieces * kPieceBytes / 8);
    for (uint64_t& word : noise) word = random_();
    std::memcpy(source_.span().data, noise.data(), kPieces * kPieceBytes);
    pair_ = backend.make(device_.get());
    sender_ = std::make_unique<FaultySender>(&pair_->sender());
  }

  void Receive(uint32_t piece) {
    pair_->receiver().Receive(Buffer(piece, target_),
                              [this, piece](absl::Status s) { visible_[piece].push_back(s); });
  }
  void Move(uint32_t piece) {
    sender_->Move(Buffer(piece, source_), [this, piece](absl::Status s) { moved_[piece].push_back(s); });
  }
  void Cancel() { sender_->Cancel(id_); }
  void Withdraw() { pair_->receiver().Withdraw(id_); }
  void Settle() { pair_->Settle(); }

  // The status with which a side of a piece ended; UNKNOWN while it has not.
  absl::Status visible(uint32_t piece) { return Once(visible_[piece]); }
  absl::Status moved(uint32_t piece) { return Once(moved_[piece]); }
  bool Same(uint32_t piece) const {
    return std::memcmp(At(source_, piece), At(target_, piece), kPieceBytes) == 0;
  }
  bool Untouched(uint32_t piece) const {
    return std::vector<std::byte>(At(target_, piece), At(target_, piece) + kPieceBytes) ==
           std::vector<std::byte>(kPieceBytes);
  }

  FaultySender& sender() { return *sender_; }
  BackendPair& pair() { return *pair_; }
  const TransferId& id() const { return id_; }

 private:
  static std::byte* At(const DeviceBuffer& buffer, uint32_t piece) {
    return buffer.span().data + piece * kPieceBytes;
  }

  PieceBuffer Buffer(uint32_t piece, const DeviceBuffer& memory) {
    PieceBuffer buffer{id_, piece, kPieceBytes, {}};
    DeviceSpan rest = memory.span().subspan(piece * kPieceBytes, kPieceBytes);
    while (rest.bytes > 0) {
      const uint64_t size = std::min<uint64_t>(rest.bytes, 1 + random_() % 400'000);
      buffer.spans.push_back(rest.subspan(0, size));
      rest = rest.subspan(size, rest.bytes - size);
    }
    return buffer;
  }

  static absl::Status Once(const std::vector<absl::Status>& calls) {
    EXPECT_LE(calls.size(), 1) << "a piece ends once";
    return calls.empty() ? absl::UnknownError("has not ended") : calls[0];
  }

  std::mt19937_64 random_;
  SeededRandomSource ids_;
  TransferId id_;
  const std::unique_ptr<Device> device_ = CreateCpuDevice();
  DeviceBuffer source_;
  DeviceBuffer target_;
  std::map<uint32_t, std::vector<absl::Status>> visible_;
  std::map<uint32_t, std::vector<absl::Status>> moved_;
  std::unique_ptr<BackendPair> pair_;
  std::unique_ptr<FaultySender> sender_;
};

TEST_P(BackendContractTest, TheSameBytesArriveInSpansOfAnyShape) {
  Transfer transfer(GetParam(), 1);
  for (uint32_t piece = 0; piece < kPieces; ++piece) transfer.Receive(piece);
  for (uint32_t piece = 0; piece < kPieces; ++piece) transfer.Move(piece);
  transfer.Settle();
  for (uint32_t piece = 0; piece < kPieces; ++piece) {
    EXPECT_TRUE(transfer.visible(piece).ok()) << transfer.visible(piece);
    EXPECT_TRUE(transfer.moved(piece).ok()) << transfer.moved(piece);
    EXPECT_TRUE(transfer.Same(piece));
  }
}

TEST_P(BackendContractTest, APieceThatNobodyReceivesTouchesNothing) {
  Transfer transfer(GetParam(), 2);
  transfer.Move(0);
  transfer.Settle();
  EXPECT_NE(transfer.moved(0).code(), absl::StatusCode::kUnknown) << "its source is given back";
  EXPECT_TRUE(transfer.Untouched(0));
}

TEST_P(BackendContractTest, AWithdrawnPieceIsNeverWritten) {
  Transfer transfer(GetParam(), 3);
  transfer.sender().Inject(0, FaultySender::Fault::kDelay);
  transfer.Receive(0);
  transfer.Move(0);
  transfer.Withdraw();
  EXPECT_EQ(transfer.visible(0).code(), absl::StatusCode::kCancelled);
  transfer.sender().Release();
  transfer.Settle();
  transfer.Cancel();
  EXPECT_NE(transfer.moved(0).code(), absl::StatusCode::kUnknown);
  EXPECT_TRUE(transfer.Untouched(0));
}

TEST_P(BackendContractTest, ALostPieceEndsByCancelAndWithdraw) {
  Transfer transfer(GetParam(), 4);
  transfer.sender().Inject(1, FaultySender::Fault::kDrop);
  for (uint32_t piece = 0; piece < 2; ++piece) transfer.Receive(piece);
  for (uint32_t piece = 0; piece < 2; ++piece) transfer.Move(piece);
  transfer.Settle();
  EXPECT_TRUE(transfer.visible(0).ok());
  EXPECT_EQ(transfer.visible(1).code(), absl::StatusCode::kUnknown);
  transfer.Cancel();
  transfer.Withdraw();
  EXPECT_EQ(transfer.visible(1).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(transfer.moved(1).code(), absl::StatusCode::kCancelled);
}

TEST_P(BackendContractTest, ADuplicateChangesNothing) {
  Transfer transfer(GetParam(), 5);
  transfer.sender().Inject(0, FaultySender::Fault::kDuplicate);
  transfer.Receive(0);
  transfer.Move(0);
  transfer.Settle();
  EXPECT_TRUE(transfer.visible(0).ok());
  EXPECT_TRUE(transfer.Same(0));
}

TEST_P(BackendContractTest, AnyOrderOfMovesIsHeldApartByPieceIds) {
  Transfer transfer(GetParam(), 6);
  for (const uint32_t piece : {0, 1}) transfer.sender().Inject(piece, FaultySender::Fault::kDelay);
  for (uint32_t piece = 0; piece < kPieces; ++piece) transfer.Receive(piece);
  for (uint32_t piece = 0; piece < kPieces; ++piece) transfer.Move(piece);
  transfer.sender().Release();
  transfer.Settle();
  for (uint32_t piece = 0; piece < kPieces; ++piece) {
    EXPECT_TRUE(transfer.visible(piece).ok());
    EXPECT_TRUE(transfer.Same(piece));
  }
}

TEST_P(BackendContractTest, CancelEndsEveryMove) {
  Transfer transfer(GetParam(), 7);
  for (uint32_t piece = 0; piece < kPieces; ++piece) transfer.Receive(piece);
  for (uint32_t piece = 0; piece < kPieces; ++piece) transfer.Move(piece);
  transfer.Cancel();
  transfer.Settle();
  for (uint32_t piece = 0; piece < kPieces; ++piece) {
    EXPECT_NE(transfer.moved(piece).code(), absl::StatusCode::kUnknown);
  }
  transfer.Withdraw();
  for (uint32_t piece = 0; piece < kPieces; ++piece) {
    EXPECT_NE(transfer.visible(piece).code(), absl::StatusCode::kUnknown);
    EXPECT_TRUE(!transfer.visible(piece).ok() || transfer.Same(piece));
  }
}

TEST_P(BackendContractTest, APieceAwaitedTwiceIsRefusedOnce) {
  Transfer transfer(GetParam(), 8);
  transfer.Receive(0);
  std::vector<absl::Status> second;
  transfer.pair().receiver().Receive(PieceBuffer{transfer.id(), 0, 0, {}},
                                     [&second](absl::Status status) { second.push_back(status); });
  ASSERT_EQ(second.size(), 1);
  EXPECT_EQ(second[0].code(), absl::StatusCode::kAlreadyExists);
  transfer.Move(0);
  transfer.Settle();
  EXPECT_TRUE(transfer.visible(0).ok());
}

}  // namespace
}  // namespace baton
