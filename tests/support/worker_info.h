#ifndef BATON_TESTS_SUPPORT_WORKER_INFO_H_
#define BATON_TESTS_SUPPORT_WORKER_INFO_H_

#include <string>
#include <utility>

#include "baton/v1/control.pb.h"
#include "common/protocol_version.h"

namespace baton {

// What a serving worker of this build says of itself; its model's sizes and its limits are the caller's to
// add.
inline v1::GetServerInfoResponse WorkerInfo(v1::Role role, std::string instance_id, std::string fingerprint) {
  v1::GetServerInfoResponse info;
  info.set_role(role);
  info.set_instance_id(std::move(instance_id));
  info.set_protocol_min(kOldestProtocolVersion);
  info.set_protocol_max(kProtocolVersion);
  info.set_state(v1::SERVER_STATE_SERVING);
  info.mutable_model()->set_fingerprint(std::move(fingerprint));
  return info;
}

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_WORKER_INFO_H_
