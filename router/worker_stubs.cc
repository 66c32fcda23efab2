#include "router/worker_stubs.h"

#include "common/grpc_channel.h"

namespace baton {
namespace {

constexpr int kLegChannels = 2;

}  // namespace

WorkerStubs::Connections& WorkerStubs::Get(const std::string& address, v1::Role role) {
  Connections& connections = connections_[address];
  if (connections.probes == nullptr) {
    const CallerRole peer = role == v1::ROLE_PREFILL ? CallerRole::kPrefill : CallerRole::kDecode;
    const std::shared_ptr<grpc::ChannelCredentials> credentials =
        credentials_ == nullptr ? grpc::InsecureChannelCredentials() : credentials_->ForPeer(peer);
    connections.legs = ChannelsTo(address, kLegChannels, credentials);
    connections.probes = ChannelTo(address, credentials);
  }
  return connections;
}

std::shared_ptr<grpc::Channel> WorkerStubs::LegChannel(const std::string& address, v1::Role role) {
  MutexLock lock(&mutex_);
  Connections& connections = Get(address, role);
  return connections.legs[connections.next++ % connections.legs.size()];
}

std::shared_ptr<v1::PrefillWorker::Stub> WorkerStubs::Prefill(const std::string& address) {
  return v1::PrefillWorker::NewStub(LegChannel(address, v1::ROLE_PREFILL));
}

std::shared_ptr<v1::DecodeWorker::Stub> WorkerStubs::Decode(const std::string& address) {
  return v1::DecodeWorker::NewStub(LegChannel(address, v1::ROLE_DECODE));
}

std::shared_ptr<v1::Control::Stub> WorkerStubs::Control(const std::string& address, v1::Role role) {
  MutexLock lock(&mutex_);
  return v1::Control::NewStub(Get(address, role).probes);
}

std::shared_ptr<grpc::health::v1::Health::Stub> WorkerStubs::Health(const std::string& address,
                                                                    v1::Role role) {
  MutexLock lock(&mutex_);
  return grpc::health::v1::Health::NewStub(Get(address, role).probes);
}

void WorkerStubs::Drop(const std::string& address) {
  MutexLock lock(&mutex_);
  connections_.erase(address);
}

}  // namespace baton
