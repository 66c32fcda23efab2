#ifndef BATON_COMMON_RAW_SERVICE_H_
#define BATON_COMMON_RAW_SERVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace baton {

// A service of three unary methods over uninterpreted bytes, for tests of what surrounds services.
class RawService final : public grpc::Service {
 public:
  static constexpr char kEcho[] = "/baton.test.Raw/Echo";  // Returns the request.
  static constexpr char kHang[] = "/baton.test.Raw/Hang";  // Ends when it is cancelled.
  static constexpr char kPeer[] = "/baton.test.Raw/Peer";  // Returns the address that the call came from.

  // `on_hang` is called when a Hang call has begun.
  explicit RawService(std::function<void()> on_hang = [] {});

 private:
  using Function = std::function<grpc::ServerUnaryReactor*(grpc::CallbackServerContext*,
                                                           const grpc::ByteBuffer*, grpc::ByteBuffer*)>;

  void Add(const char* method, Function function);

  const std::function<void()> on_hang_;
  int methods_ = 0;
};

// One blocking call of `method` with the bytes of `request`.
grpc::Status CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     grpc::ClientContext* context, const std::string& request, std::string* response);

}  // namespace baton

#endif  // BATON_COMMON_RAW_SERVICE_H_
