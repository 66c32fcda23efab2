// A LandingTable in the hands of peers that send anything: streams, messages, completions and time in any
// order. Its invariants hold after every event, every destination that it names is memory of its own landing,
// and at the end no block is lost.

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "common/check.h"
#include "common/protocol_version.h"
#include "engine/kv/kv_pools.h"
#include "kv_transfer/landing.h"
#include "kv_transfer/landing_table.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/land_geometry.h"

namespace baton {
namespace {

constexpr uint32_t kPrompt = 40;

class Target {
 public:
  Target() {
    device_ = CreateCpuDevice();
    pools_ = *KvPools::Create(device_.get(), LandGeometry(), 16 << 10, 64, 16);
    LandingTable::Options options{.transports = {{"grpc", true}, {"inproc", false}}};
    options.receiver = {.max_bytes_outstanding = 3000, .max_piece_bytes = 4000, .max_waiting_pieces = 8};
    options.max_unopened_streams = 3;
    table_ = std::make_unique<LandingTable>(options, pools_.get());
    Add();
  }

  void Step(Input& input) {
    const uint8_t op = input.Byte() % 11;
    LandStreamId& slot = streams_[input.Byte() % 4];
    if (op == 0) slot = ++last_stream_;  // ids are never used twice
    const LandStreamId stream = slot;
    switch (op) {
      case 0:
        return Run(table_->OnConnected(stream, now_));
      case 1: {
        v1::LandRequest request;
        if (request.ParseFromString(input.Bytes(input.Short()))) Message(stream, request);
        return;
      }
      case 2:
        return Message(stream, Open(input.Byte()));
      case 3:
        return Message(stream, Offer(input));
      case 4:
        return Message(stream, Data(input));
      case 5: {
        v1::LandRequest request;
        request.mutable_commit()->set_kv_bytes(input.Short());
        request.mutable_commit()->mutable_first_token()->set_id(1);
        return Message(stream, request);
      }
      case 6: {
        const uint32_t piece = input.Byte();
        return Visible(stream, piece, input.Byte() % 4 == 1 ? absl::DataLossError("") : absl::OkStatus());
      }
      case 7:
        return Run(table_->OnClosed(stream, absl::UnavailableError(""), now_));
      case 8:
        now_ += absl::Seconds(input.Byte());
        return Run(table_->OnTimer(now_));
      case 9:
        return Run(table_->Drop(Id(), now_));
      case 10:
        return Add();
    }
  }

  // Ends everything; nothing may be left.
  void End() {
    Run(table_->DropAll(now_));
    while (!receiving_.empty()) {
      const auto [stream, piece] = receiving_.begin()->first;
      Visible(stream, piece, absl::CancelledError(""));
    }
    BATON_CHECK(table_->landings() == 0);
    BATON_CHECK(table_->draining() == 0);
    Run(table_->OnTimer(now_ + absl::Hours(1)));
    BATON_CHECK(table_->tombstones() == 0);
    BATON_CHECK(pools_->CheckAllFree().ok());
  }

 private:
  static TransferId Id() { return *TransferId::FromBytes(std::string(16, 'i')); }

  void Add() {
    LandingSpec spec;
    spec.transfer_id = Id();
    spec.ticket = std::string(kTicketBytes, 't');
    spec.prefill_instance_id = "prefill";
    absl::StatusOr<SequenceKv> kv = pools_->Reserve(kPrompt + 5);
    if (!kv.ok()) return;
    spec.kv = *std::move(kv);
    spec.kv.BeginLanding();
    spec.wanted = WantedAfter(pools_->geometry(), kPrompt);
    spec.expires = now_ + absl::Seconds(100);
    Run(table_->Add(std::move(spec), now_));
  }

  static v1::LandRequest Open(uint8_t flags) {
    v1::LandRequest request;
    v1::LandOpen* open = request.mutable_open();
    open->set_protocol_version(kProtocolVersion);
    open->set_transfer_id(std::string(16, 'i'));
    open->set_ticket(std::string(kTicketBytes, 't'));
    open->set_sender_instance_id("prefill");
    open->set_layout_id(LandGeometry().LayoutId());
    open->set_block_tokens(1u << (flags >> 1 & 7));
    open->set_transport(flags & 1 ? "inproc" : "grpc");
    return request;
  }

  static v1::LandRequest Offer(Input& input) {
    v1::LandRequest request;
    request.mutable_offer();
    for (int count = input.Byte() % 16; count > 0; --count) {
      v1::Piece* piece = request.mutable_offer()->add_pieces();
      piece->set_id(input.Byte());
      piece->set_group(input.Byte());
      piece->set_layer_begin(input.Byte());
      piece->set_layer_end(input.Byte());
      piece->set_token_begin(input.Byte());
      piece->set_token_end(input.Byte());
    }
    return request;
  }

  static v1::LandRequest Data(Input& input) {
    v1::LandRequest request;
    request.mutable_data()->set_piece_id(input.Byte());
    request.mutable_data()->set_offset(input.Short());
    request.mutable_data()->set_bytes(std::string(input.Short() % 8192, 'd'));
    if (input.Byte() & 1) request.mutable_data()->set_checksum(1);
    return request;
  }

  void Message(LandStreamId stream, const v1::LandRequest& request) {
    Run(table_->OnMessage(stream, request, now_));
  }

  void Visible(LandStreamId stream, uint32_t piece, const absl::Status& status) {
    receiving_.erase({stream, piece});
    Run(table_->OnVisible(stream, piece, status, now_));
  }

  void Run(landing::Actions actions) {
    for (landing::Action& action : actions) {
      if (auto* receive = std::get_if<landing::ReceivePiece>(&action)) {
        uint64_t bytes = 0;
        for (const DeviceSpan& span : receive->destination) {
          std::memset(span.data, 1, span.bytes);
          bytes += span.bytes;
        }
        BATON_CHECK(bytes == receive->bytes);
        BATON_CHECK(receiving_.emplace(std::pair(receive->stream, receive->piece.id), bytes).second);
      } else if (auto* data = std::get_if<landing::DeliverData>(&action)) {
        const auto piece = receiving_.find({data->stream, data->piece_id});
        // A backend that has ended the piece takes no more for it.
        if (piece != receiving_.end()) BATON_CHECK(data->offset + data->bytes.size() <= piece->second);
      } else if (auto* landed = std::get_if<landing::Landed>(&action)) {
        for (const auto& [key, bytes] : receiving_) BATON_CHECK(key.first != committed_stream_);
        BATON_CHECK(landed->bytes ==
                    WantedBytes(pools_->geometry(), WantedAfter(pools_->geometry(), kPrompt)));
      } else if (auto* reply = std::get_if<landing::SendReply>(&action)) {
        if (reply->reply.has_committed()) committed_stream_ = reply->stream;
      }
    }
    actions.clear();
    const absl::Status table = table_->CheckInvariants();
    BATON_CHECK(table.ok());
    BATON_CHECK(pools_->CheckInvariants().ok());
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<KvPools> pools_;
  std::unique_ptr<LandingTable> table_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::map<std::pair<LandStreamId, uint32_t>, uint64_t> receiving_;  // posted, not yet visible -> bytes
  LandStreamId streams_[4] = {};
  LandStreamId last_stream_ = 0;
  LandStreamId committed_stream_ = 0;
};

}  // namespace
}  // namespace baton

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  baton::Input input(data, size);
  baton::Target target;
  while (!input.empty()) target.Step(input);
  target.End();
  return 0;
}
