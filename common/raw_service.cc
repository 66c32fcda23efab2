#include "common/raw_service.h"

#include <future>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/support/byte_buffer.h"

namespace baton {
namespace {

using grpc::ByteBuffer;

class HangReactor final : public grpc::ServerUnaryReactor {
 public:
  void OnCancel() override { Finish(grpc::Status::CANCELLED); }
  void OnDone() override { delete this; }
};

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace

RawService::RawService(std::function<void()> on_hang) : on_hang_(std::move(on_hang)) {
  Add(kEcho, [](grpc::CallbackServerContext* context, const ByteBuffer* request, ByteBuffer* response) {
    *response = *request;
    return Answer(context);
  });
  Add(kHang,
      [this](grpc::CallbackServerContext*, const ByteBuffer*, ByteBuffer*) -> grpc::ServerUnaryReactor* {
        on_hang_();
        return new HangReactor;
      });
  Add(kPeer, [](grpc::CallbackServerContext* context, const ByteBuffer*, ByteBuffer* response) {
    const grpc::Slice peer(context->peer());
    *response = ByteBuffer(&peer, 1);
    return Answer(context);
  });
}

void RawService::Add(const char* method, Function function) {
  AddMethod(new grpc::internal::RpcServiceMethod(method, grpc::internal::RpcMethod::NORMAL_RPC, nullptr));
  MarkMethodCallback(methods_++,
                     new grpc::internal::CallbackUnaryHandler<ByteBuffer, ByteBuffer>(std::move(function)));
}

grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     grpc::ClientContext* context, const std::string& request, std::string* response) {
  grpc::GenericStub stub(channel);
  const grpc::Slice slice(request);
  const ByteBuffer request_buffer(&slice, 1);
  ByteBuffer response_buffer;
  std::promise<grpc::Status> done;
  stub.UnaryCall(context, method, {}, &request_buffer, &response_buffer,
                 [&done](grpc::Status status) { done.set_value(std::move(status)); });
  const grpc::Status status = done.get_future().get();
  grpc::Slice whole;
  if (status.ok() && response_buffer.DumpToSingleSlice(&whole).ok()) {
    response->assign(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }
  return status;
}

}  // namespace baton
