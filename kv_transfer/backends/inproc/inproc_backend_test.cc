#include "kv_transfer/backends/inproc/inproc_backend.h"

#include "kv_transfer/backends/contract_test.h"

namespace baton {
namespace {

class InprocPair final : public BackendPair {
 public:
  explicit InprocPair(Device* device)
      : sender_(InprocBackend(&rendezvous_).make_sender(device, nullptr)),
        receiver_(InprocBackend(&rendezvous_).make_receiver(device)) {}

  KvSendBackend& sender() override { return *sender_; }
  KvReceiveBackend& receiver() override { return *receiver_; }
  void Settle() override {}

 private:
  InprocRendezvous rendezvous_;
  const std::unique_ptr<KvSendBackend> sender_;
  const std::unique_ptr<KvReceiveBackend> receiver_;
};

INSTANTIATE_TEST_SUITE_P(Inproc, BackendContractTest,
                         testing::Values(BackendUnderTest{
                             "inproc", [](Device* device) { return std::make_unique<InprocPair>(device); }}));

TEST(InprocBackend, SizesThatDifferEndBothSides) {
  const std::unique_ptr<Device> device = CreateCpuDevice();
  InprocPair pair(device.get());
  const DeviceBuffer memory = *device->Allocate(64);
  absl::Status moved, visible;
  pair.receiver().Receive({TransferId(), 1, 32, {memory.span().subspan(0, 32)}},
                          [&](absl::Status s) { visible = s; });
  pair.sender().Move({TransferId(), 1, 16, {memory.span().subspan(32, 16)}},
                     [&](absl::Status s) { moved = s; });
  EXPECT_EQ(moved.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(visible.code(), absl::StatusCode::kInvalidArgument);
}

TEST(InprocBackend, BytesOnTheStreamEndThePiece) {
  const std::unique_ptr<Device> device = CreateCpuDevice();
  InprocPair pair(device.get());
  const DeviceBuffer memory = *device->Allocate(64);
  absl::Status visible;
  pair.receiver().Receive({TransferId(), 1, 64, {memory.span()}}, [&](absl::Status s) { visible = s; });
  pair.receiver().Deliver(TransferId(), 1, 0, "x", std::nullopt);
  EXPECT_EQ(visible.code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
