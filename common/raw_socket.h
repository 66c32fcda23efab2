#ifndef BATON_COMMON_RAW_SOCKET_H_
#define BATON_COMMON_RAW_SOCKET_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/time/time.h"

namespace baton {

// A TCP socket on loopback for tests that play a raw peer, such as one that falls silent. One thread at a
// time. Failures end the test process.
class RawSocket {
 public:
  // A connection to 127.0.0.1:`port`.
  static RawSocket Connect(uint16_t port);
  // Listens on a free port.
  static RawSocket Listen();

  RawSocket(RawSocket&& other) noexcept;
  ~RawSocket();

  uint16_t port() const;  // The local one.
  RawSocket Accept();
  void Send(std::string_view bytes);

  // All that the peer sends until it closes the connection.
  std::string ReadUntilClosed();

  // Reads and drops what the peer sends until it closes the connection; infinite after `limit`. Returns how
  // long that took.
  absl::Duration TimeUntilClosed(absl::Duration limit);

 private:
  explicit RawSocket(int fd) : fd_(fd) {}

  int fd_ = -1;
};

}  // namespace baton

#endif  // BATON_COMMON_RAW_SOCKET_H_
