#include "common/host_port.h"

#include <arpa/inet.h>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/string_views.h"

namespace baton {
namespace {

constexpr size_t kMaxHostLength = 253;  // Of a DNS name.

bool IsIpv6(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// Letters, digits, '.', '-' and '_': IPv4 addresses and DNS names.
bool IsName(std::string_view host) {
  if (host.empty() || host.size() > kMaxHostLength) return false;
  for (const char c : host) {
    if (!isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '-' && c != '_') return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<HostPort> HostPort::Parse(std::string_view text) {
  const auto error = [text] {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", AbslView(text), "\" is not host:port with a port from 0 to 65535"));
  };
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error();
  HostPort result;
  std::string_view host = text.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (bracketed) host = host.substr(1, host.size() - 2);
  result.host = std::string(host);
  if (bracketed ? !IsIpv6(result.host) : !IsName(host)) return error();
  const std::string_view digits = text.substr(colon + 1);
  uint32_t port = 0;
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos ||
      !absl::SimpleAtoi(AbslView(digits), &port) || port > 65535) {
    return error();
  }
  result.port = static_cast<uint16_t>(port);
  return result;
}

std::string HostPort::ToString() const {
  if (host.find(':') != std::string::npos) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

bool HostPort::IsLoopback() const {
  if (host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

bool HostPort::IsUnspecified() const {
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return v4.s_addr == htonl(INADDR_ANY);
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_UNSPECIFIED(&v6);
}

}  // namespace baton
