#ifndef BATON_ROUTER_CLIENT_QUOTA_H_
#define BATON_ROUTER_CLIENT_QUOTA_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"

namespace baton {

// How many requests each client has at once. Thread-safe; its slots may outlive it.
class ClientQuota {
 private:
  struct Taken {
    Mutex mutex;
    std::map<std::string, uint32_t> of ABSL_GUARDED_BY(mutex);  // none is 0
  };

 public:
  // One request of a client. Given back by its end.
  class Slot {
   public:
    Slot(std::shared_ptr<Taken> taken, std::string client)
        : taken_(std::move(taken)), client_(std::move(client)) {}
    ~Slot();
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;

   private:
    const std::shared_ptr<Taken> taken_;
    const std::string client_;
  };

  // `most`: of one client at once.
  explicit ClientQuota(uint32_t most) : most_(most) {}

  // RESOURCE_EXHAUSTED with RetryInfo when the client has as many as it may.
  absl::StatusOr<std::shared_ptr<Slot>> Take(const std::string& client);

  // Clients that have a request.
  size_t clients() const;

 private:
  const uint32_t most_;
  const std::shared_ptr<Taken> taken_ = std::make_shared<Taken>();
};

}  // namespace baton

#endif  // BATON_ROUTER_CLIENT_QUOTA_H_
