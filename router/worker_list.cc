#include "router/worker_list.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <memory>

#include "common/host_port.h"
#include "common/status_macros.h"

namespace baton {
namespace {

bool IsAddress(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

std::string Text(const addrinfo& entry) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* address =
      entry.ai_family == AF_INET
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(entry.ai_addr)->sin_addr)
          : &reinterpret_cast<const sockaddr_in6*>(entry.ai_addr)->sin6_addr;
  inet_ntop(entry.ai_family, address, text, sizeof(text));
  return text;
}

}  // namespace

absl::Status CheckWorkerList(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) RETURN_IF_ERROR(HostPort::Parse(entry).status());
  return absl::OkStatus();
}

std::set<std::string> ResolveWorkers(const std::vector<std::string>& entries,
                                     std::vector<std::string>* unresolved) {
  std::set<std::string> workers;
  for (const std::string& entry : entries) {
    const absl::StatusOr<HostPort> parsed = HostPort::Parse(entry);
    if (!parsed.ok()) continue;
    if (IsAddress(parsed->host) || parsed->host == "localhost") {
      workers.insert(parsed->ToString());
      continue;
    }
    addrinfo hints = {};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* found = nullptr;
    if (getaddrinfo(parsed->host.c_str(), nullptr, &hints, &found) != 0) {
      unresolved->push_back(entry);
      continue;
    }
    const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, &freeaddrinfo);
    for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
      if (at->ai_family == AF_INET || at->ai_family == AF_INET6)
        workers.insert(HostPort{Text(*at), parsed->port}.ToString());
    }
  }
  return workers;
}

}  // namespace baton
