#ifndef BATON_TESTS_FUZZ_INPUT_H_
#define BATON_TESTS_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

namespace baton {

// Bytes of a fuzzer's input; zeros once it is used up.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  bool empty() const { return size_ == 0; }
  uint8_t Byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint32_t Short() {
    const uint32_t low = Byte();
    return low | uint32_t{Byte()} << 8;
  }
  std::string Bytes(size_t count) {
    count = std::min(count, size_);
    std::string bytes(reinterpret_cast<const char*>(data_), count);
    data_ += count;
    size_ -= count;
    return bytes;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

}  // namespace baton

#endif  // BATON_TESTS_FUZZ_INPUT_H_
