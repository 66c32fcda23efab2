#ifndef BATON_KV_TRANSFER_BACKENDS_CONTRACT_TEST_H_
#define BATON_KV_TRANSFER_BACKENDS_CONTRACT_TEST_H_

#include <functional>
#include <memory>
#include <string>

#include "engine/device/device.h"
#include "gtest/gtest.h"
#include "kv_transfer/kv_backend.h"

namespace baton {

// The two halves of a backend, connected.
class BackendPair {
 public:
  virtual ~BackendPair() = default;
  virtual KvSendBackend& sender() = 0;
  virtual KvReceiveBackend& receiver() = 0;
  // Lets what is under way arrive.
  virtual void Settle() = 0;
};

struct BackendUnderTest {
  std::string name;
  std::function<std::unique_ptr<BackendPair>(Device*)> make;
};

// What kv_backend.h promises, for every backend:
//   INSTANTIATE_TEST_SUITE_P(Inproc, BackendContractTest, testing::Values(BackendUnderTest{"inproc", ...}));
class BackendContractTest : public testing::TestWithParam<BackendUnderTest> {};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_BACKENDS_CONTRACT_TEST_H_
