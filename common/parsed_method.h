#ifndef BATON_COMMON_PARSED_METHOD_H_
#define BATON_COMMON_PARSED_METHOD_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/grpc_status.h"
#include "common/parse_message.h"
#include "google/protobuf/message.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace baton {

// See parse_message.h.
inline absl::Status ParseMessage(const grpc::ByteBuffer& buffer, google::protobuf::Message* message) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return absl::InvalidArgumentError("the request cannot be read");
  std::string bytes;
  bytes.reserve(buffer.Length());
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return ParseMessage(bytes, message);
}

inline grpc::ServerUnaryReactor* FinishUnary(grpc::CallbackServerContext* context,
                                             const absl::Status& status) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// A unary method that takes bytes, for MarkMethodCallback: parses the request, and calls `handle` with it or
// answers INVALID_ARGUMENT.
template <typename Request, typename Response>
grpc::internal::MethodHandler* ParsedMethod(
    std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext*, const Request&, Response*)>
        handle) {
  return new grpc::internal::CallbackUnaryHandler<grpc::ByteBuffer, Response>(
      [handle = std::move(handle)](grpc::CallbackServerContext* context, const grpc::ByteBuffer* bytes,
                                   Response* response) {
        Request request;
        const absl::Status status = ParseMessage(*bytes, &request);
        return status.ok() ? handle(context, request, response) : FinishUnary(context, status);
      });
}

}  // namespace baton

#endif  // BATON_COMMON_PARSED_METHOD_H_
