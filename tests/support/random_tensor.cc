#include "tests/support/random_tensor.h"

#include <bit>
#include <cstring>

#include "common/check.h"
#include "engine/model_file/dequantize.h"

namespace baton {
namespace {

// Standard deviations of the integers 0 ... n - 1.
constexpr float kDeviation16 = 4.61f;
constexpr float kDeviation32 = 9.23f;
constexpr float kDeviation64 = 18.47f;
constexpr float kDeviation256 = 73.9f;
constexpr float kMeanScale = 32;  // of 6-bit and 8-bit sub-block scales below

// The same on every machine, which the distributions of the standard library need not be. In [0, 1).
float Uniform(std::mt19937& random) { return static_cast<float>(random() >> 8) * 0x1p-24f; }

// Of mean 0 and standard deviation 1, near enough to normal.
float Normal(std::mt19937& random) {
  float sum = -2;
  for (int i = 0; i < 4; ++i) sum += Uniform(random);
  return sum * 1.7320508f;
}

class BlockWriter {
 public:
  BlockWriter(std::byte* out, std::mt19937& random) : out_(out), random_(random) {}

  void Half(float value) {
    const uint16_t bits = FloatToHalf(value);
    std::memcpy(out_, &bits, sizeof(bits));
    out_ += sizeof(bits);
  }
  void Random(uint32_t count) {
    for (; count > 0; --count) *out_++ = static_cast<std::byte>(random_() & 0xff);
  }
  // The packed scales of K-quants: eight pairs of 6 bits, equal within a pair so that minima follow scales.
  // In 24..39, whose upper two bits are 01 or 10.
  void ScalePairs() {
    uint32_t scales[8];
    for (uint32_t& scale : scales) scale = 24 + random_() % 16;
    for (int j = 0; j < 4; ++j) *out_++ = static_cast<std::byte>(scales[j] | (scales[j + 4] >> 4) << 6);
    for (int j = 0; j < 4; ++j) *out_++ = static_cast<std::byte>(scales[j] | (scales[j + 4] >> 4) << 6);
    for (int j = 4; j < 8; ++j) *out_++ = static_cast<std::byte>((scales[j] & 15) | (scales[j] & 15) << 4);
  }
  void SignedScales(uint32_t count) {
    for (; count > 0; --count) {
      const int scale = 24 + static_cast<int>(random_() % 16);
      *out_++ = static_cast<std::byte>(random_() % 2 == 0 ? scale : -scale);
    }
  }

 private:
  std::byte* out_;
  std::mt19937& random_;
};

void WriteBlock(TensorType type, float deviation, BlockWriter& out) {
  switch (type) {
    case TensorType::kQ4_0:
      out.Half(deviation / kDeviation16);
      return out.Random(16);
    case TensorType::kQ4_1:
      out.Half(deviation / kDeviation16);
      out.Half(deviation / kDeviation16 * -7.5f);
      return out.Random(16);
    case TensorType::kQ5_0:
      out.Half(deviation / kDeviation32);
      return out.Random(20);
    case TensorType::kQ5_1:
      out.Half(deviation / kDeviation32);
      out.Half(deviation / kDeviation32 * -15.5f);
      return out.Random(20);
    case TensorType::kQ8_0:
      out.Half(deviation / kDeviation256);
      return out.Random(32);
    case TensorType::kQ4_K:
      out.Half(deviation / (kDeviation16 * kMeanScale));
      out.Half(deviation / (kDeviation16 * kMeanScale) * 7.5f);
      out.ScalePairs();
      return out.Random(128);
    case TensorType::kQ5_K:
      out.Half(deviation / (kDeviation32 * kMeanScale));
      out.Half(deviation / (kDeviation32 * kMeanScale) * 15.5f);
      out.ScalePairs();
      return out.Random(32 + 128);
    case TensorType::kQ6_K:
      out.Random(128 + 64);
      out.SignedScales(16);
      return out.Half(deviation / (kDeviation64 * kMeanScale));
    case TensorType::kF32:
    case TensorType::kF16:
    case TensorType::kBF16:
      break;
  }
  BATON_CHECK(false);
}

}  // namespace

std::vector<std::byte> RandomTensor(TensorType type, uint64_t elements, float deviation,
                                    std::mt19937& random) {
  const TensorTypeTraits traits = TraitsOf(type);
  BATON_CHECK(elements % traits.elements == 0);
  const uint64_t blocks = elements / traits.elements;
  std::vector<std::byte> bytes(blocks * traits.bytes);
  for (uint64_t block = 0; block < blocks; ++block) {
    std::byte* const out = bytes.data() + block * traits.bytes;
    if (type == TensorType::kF32) {
      const float value = deviation * Normal(random);
      std::memcpy(out, &value, sizeof(value));
    } else if (type == TensorType::kF16 || type == TensorType::kBF16) {
      const float value = deviation * Normal(random);
      const uint16_t bits = type == TensorType::kF16
                                ? FloatToHalf(value)
                                : static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      std::memcpy(out, &bits, sizeof(bits));
    } else {
      BlockWriter writer(out, random);
      WriteBlock(type, deviation * (0.7f + 0.6f * Uniform(random)), writer);
    }
  }
  return bytes;
}

}  // namespace baton
