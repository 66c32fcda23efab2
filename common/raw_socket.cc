#include "common/raw_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "common/check.h"
#include "common/steady_clock.h"

namespace baton {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int NewSocket() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BATON_CHECK(fd >= 0);
  return fd;
}

}  // namespace

RawSocket RawSocket::Connect(uint16_t port) {
  RawSocket result(NewSocket());
  const sockaddr_in address = Loopback(port);
  BATON_CHECK(connect(result.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  return result;
}

RawSocket RawSocket::Listen() {
  RawSocket result(NewSocket());
  const sockaddr_in address = Loopback(0);
  BATON_CHECK(bind(result.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
  BATON_CHECK(listen(result.fd_, 8) == 0);
  return result;
}

RawSocket::RawSocket(RawSocket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

RawSocket::~RawSocket() {
  if (fd_ >= 0) close(fd_);
}

uint16_t RawSocket::port() const {
  sockaddr_in address = {};
  socklen_t size = sizeof(address);
  BATON_CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  return ntohs(address.sin_port);
}

RawSocket RawSocket::Accept() {
  const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
  BATON_CHECK(fd >= 0);
  return RawSocket(fd);
}

void RawSocket::Send(std::string_view bytes) {
  BATON_CHECK(send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

std::string RawSocket::ReadUntilClosed() {
  std::string all;
  char buffer[4096];
  for (ssize_t bytes; (bytes = recv(fd_, buffer, sizeof(buffer), 0)) > 0;) all.append(buffer, bytes);
  return all;
}

absl::Duration RawSocket::TimeUntilClosed(absl::Duration limit) {
  const SteadyClock clock;
  const absl::Time start = clock.Now();
  while (clock.Now() - start < limit) {
    pollfd waiting = {.fd = fd_, .events = POLLIN};
    const absl::Duration left = limit - (clock.Now() - start);
    if (poll(&waiting, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1) == 0) break;
    char buffer[4096];
    if (recv(fd_, buffer, sizeof(buffer), 0) <= 0) return clock.Now() - start;
  }
  return absl::InfiniteDuration();
}

}  // namespace baton
