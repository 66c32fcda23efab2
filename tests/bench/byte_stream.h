#ifndef BATON_TESTS_BENCH_BYTE_STREAM_H_
#define BATON_TESTS_BENCH_BYTE_STREAM_H_

#include <cstdint>
#include <thread>
#include <vector>

namespace baton {

// A TCP connection on loopback with a thread that reads: the least that carrying bytes to another process
// costs. Used by one thread. Failures end the process.
class ByteStream {
 public:
  ByteStream();
  ~ByteStream();
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Sends so many bytes and returns when the reader has them all in its memory and has said so.
  void Carry(uint64_t bytes);

 private:
  void Read();

  int sender_ = -1;
  int receiver_ = -1;
  std::vector<char> buffer_;
  std::thread reader_;
};

}  // namespace baton

#endif  // BATON_TESTS_BENCH_BYTE_STREAM_H_
