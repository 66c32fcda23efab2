#include "tests/bench/byte_stream.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "common/check.h"

namespace baton {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

// False at the end of the stream.
bool ReadFully(int fd, void* to, size_t bytes) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got = recv(fd, at, bytes, 0);
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

void WriteFully(int fd, const void* from, size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL);
    BATON_CHECK(sent > 0);
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
}

}  // namespace

ByteStream::ByteStream() : buffer_(kBufferBytes, 3) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  BATON_CHECK(listener >= 0);
  BATON_CHECK(bind(listener, reinterpret_cast<sockaddr*>(&address), length) == 0);
  BATON_CHECK(listen(listener, 1) == 0);
  BATON_CHECK(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) == 0);
  sender_ = socket(AF_INET, SOCK_STREAM, 0);
  BATON_CHECK(connect(sender_, reinterpret_cast<sockaddr*>(&address), length) == 0);
  receiver_ = accept(listener, nullptr, nullptr);
  BATON_CHECK(receiver_ >= 0);
  const int on = 1;
  for (const int fd : {sender_, receiver_}) {
    BATON_CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0);
  }
  close(listener);
  reader_ = std::thread([this] { Read(); });
}

ByteStream::~ByteStream() {
  shutdown(sender_, SHUT_WR);
  reader_.join();
  close(sender_);
  close(receiver_);
}

void ByteStream::Carry(uint64_t bytes) {
  WriteFully(sender_, &bytes, sizeof(bytes));
  for (uint64_t left = bytes; left > 0;) {
    const size_t part = static_cast<size_t>(std::min<uint64_t>(left, buffer_.size()));
    WriteFully(sender_, buffer_.data(), part);
    left -= part;
  }
  char done = 0;
  BATON_CHECK(ReadFully(sender_, &done, 1));
}

void ByteStream::Read() {
  std::vector<char> memory;
  uint64_t bytes = 0;
  while (ReadFully(receiver_, &bytes, sizeof(bytes))) {
    if (memory.size() < bytes) memory.resize(bytes);
    if (!ReadFully(receiver_, memory.data(), bytes)) return;
    const char done = 1;
    WriteFully(receiver_, &done, 1);
  }
}

}  // namespace baton
