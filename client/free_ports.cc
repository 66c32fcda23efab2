#include "client/free_ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/status/status.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// Binds the socket to this port of loopback, 0 for any; returns the port, or 0 when it cannot be had.
uint16_t Bind(int socket, uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket, generic, size) != 0 || listen(socket, 1) != 0 || getsockname(socket, generic, &size) != 0)
    return 0;
  return ntohs(address.sin_port);
}

int LoopbackSocket() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

}  // namespace

absl::StatusOr<std::vector<uint16_t>> FreePorts(size_t count) {
  std::vector<int> sockets;  // All held until the last is found, so that they differ.
  std::vector<uint16_t> ports;
  for (size_t i = 0; i < count; ++i) {
    sockets.push_back(LoopbackSocket());
    ports.push_back(Bind(sockets.back(), 0));
    if (ports.back() == 0) break;
  }
  const int error = errno;
  for (const int socket : sockets) close(socket);
  if (!ports.empty() && ports.back() == 0) {
    return absl::UnavailableError(StrCat("no free port on loopback: ", std::strerror(error)));
  }
  return ports;
}

bool IsFreePort(uint16_t port) {
  const int socket = LoopbackSocket();
  const int reuse = 1;  // As servers do: a port whose connections linger is free.
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
  const bool is_free = Bind(socket, port) != 0;
  close(socket);
  return is_free;
}

}  // namespace baton
