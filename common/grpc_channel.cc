#include "common/grpc_channel.h"

#include "common/grpc_limits.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"

namespace baton {
namespace {

// A worker that comes back is found within a second; one that is gone is not hammered.
constexpr int kFirstBackoffMs = 100;
constexpr int kLongestBackoffMs = 1000;
// The time for one attempt to connect, 20 s unless set.
constexpr int kConnectTimeoutMs = 3000;

}  // namespace

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target,
                                         const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveTimeMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kLongestBackoffMs);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  // Without it, channels of equal arguments share one connection.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

std::vector<std::shared_ptr<grpc::Channel>> ChannelsTo(
    const std::string& target, int count, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < count; ++i) channels.push_back(ChannelTo(target, credentials));
  return channels;
}

std::shared_ptr<grpc::Channel> CreateChannel(const std::string& target) {
  return ChannelTo(target, grpc::InsecureChannelCredentials());
}

std::vector<std::shared_ptr<grpc::Channel>> CreateChannels(const std::string& target, int count) {
  return ChannelsTo(target, count, grpc::InsecureChannelCredentials());
}

}  // namespace baton
