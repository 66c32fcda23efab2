#ifndef BATON_COMMON_GRPC_CHANNEL_H_
#define BATON_COMMON_GRPC_CHANNEL_H_

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/security/credentials.h"

namespace baton {

// A channel to `target` (host:port, or any gRPC target) with a connection of its own, shared with no other
// channel. Connects at the first call and again whenever the connection is lost. Keepalive and message limits
// are those of grpc_limits.h. The library retries nothing: only the router's own policy does. Proxies named
// by the environment are ignored.
std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target,
                                         const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// `count` such channels: `count` connections to one peer.
std::vector<std::shared_ptr<grpc::Channel>> ChannelsTo(
    const std::string& target, int count, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// In plaintext.
std::shared_ptr<grpc::Channel> CreateChannel(const std::string& target);
std::vector<std::shared_ptr<grpc::Channel>> CreateChannels(const std::string& target, int count);

}  // namespace baton

#endif  // BATON_COMMON_GRPC_CHANNEL_H_
