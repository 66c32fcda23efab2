#include "router/worker_stubs.h"

#include "common/grpc_channel.h"

namespace baton {
namespace {

constexpr int kLegChannels = 2;

}  // namespace

WorkerStubs::Connections& WorkerStubs::Get(const std::string& address) {
  Connections& connections = connections_[address];
  if (connections.probes == nullptr) {
    connections.legs = CreateChannels(address, kLegChannels);
    connections.probes = CreateChannel(address);
  }
  return connections;
}

std::shared_ptr<grpc::Channel> WorkerStubs::LegChannel(const std::string& address) {
  MutexLock lock(&mutex_);
  Connections& connections = Get(address);
  return connections.legs[connections.next++ % connections.legs.size()];
}

std::shared_ptr<v1::PrefillWorker::Stub> WorkerStubs::Prefill(const std::string& address) {
  return v1::PrefillWorker::NewStub(LegChannel(address));
}

std::shared_ptr<v1::DecodeWorker::Stub> WorkerStubs::Decode(const std::string& address) {
  return v1::DecodeWorker::NewStub(LegChannel(address));
}

std::shared_ptr<v1::Control::Stub> WorkerStubs::Control(const std::string& address) {
  MutexLock lock(&mutex_);
  return v1::Control::NewStub(Get(address).probes);
}

void WorkerStubs::Drop(const std::string& address) {
  MutexLock lock(&mutex_);
  connections_.erase(address);
}

}  // namespace baton
