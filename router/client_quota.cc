#include "router/client_quota.h"

#include "absl/time/time.h"
#include "common/error_details.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// A client at its limit waits for an answer of its own; this is soon enough to look again.
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

}  // namespace

ClientQuota::Slot::~Slot() {
  MutexLock lock(&taken_->mutex);
  const auto found = taken_->of.find(client_);
  if (--found->second == 0) taken_->of.erase(found);
}

absl::StatusOr<std::shared_ptr<ClientQuota::Slot>> ClientQuota::Take(const std::string& client) {
  MutexLock lock(&taken_->mutex);
  uint32_t& count = taken_->of[client];
  if (count >= most_) {
    const absl::Status status = absl::ResourceExhaustedError(
        StrCat("this client has ", count, " requests at once, at most ", most_, " are allowed"));
    return WithErrorInfo(WithRetryInfo(status, kRetryAfter), "TOO_MANY_STREAMS");
  }
  ++count;
  return std::make_shared<Slot>(taken_, client);
}

size_t ClientQuota::clients() const {
  MutexLock lock(&taken_->mutex);
  return taken_->of.size();
}

}  // namespace baton
