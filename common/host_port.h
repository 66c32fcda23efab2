#ifndef BATON_COMMON_HOST_PORT_H_
#define BATON_COMMON_HOST_PORT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace baton {

// A TCP address as options and peers spell it: "host:port", with an IPv6 host in brackets.
struct HostPort {
  std::string host;  // Without brackets.
  uint16_t port = 0;

  static absl::StatusOr<HostPort> Parse(std::string_view text);

  std::string ToString() const;

  // Whether only this machine can reach it: "localhost", 127.0.0.0/8 and ::1. Other names are not resolved
  // and count as no.
  bool IsLoopback() const;
  // Whether it stands for every address of the machine: 0.0.0.0 and ::.
  bool IsUnspecified() const;
};

}  // namespace baton

#endif  // BATON_COMMON_HOST_PORT_H_
