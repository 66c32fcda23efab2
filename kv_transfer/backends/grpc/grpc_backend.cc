#include "kv_transfer/backends/grpc/grpc_backend.h"

#include "kv_transfer/backends/grpc/grpc_receiver.h"
#include "kv_transfer/backends/grpc/grpc_sender.h"

namespace baton {

KvBackendKind GrpcBackend() {
  return {.name = "grpc",
          .data_on_stream = true,
          .make_sender = [](Device* device, LandDataWriter* writer) -> std::unique_ptr<KvSendBackend> {
            return std::make_unique<GrpcSender>(device, writer);
          },
          .make_receiver = [](Device* device) -> std::unique_ptr<KvReceiveBackend> {
            return std::make_unique<GrpcReceiver>(device);
          }};
}

}  // namespace baton
