#ifndef BATON_ENGINE_TOKENIZER_JINJA_LIMITS_H_
#define BATON_ENGINE_TOKENIZER_JINJA_LIMITS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "engine/tokenizer/jinja/error.h"

namespace baton::jinja {

// What a template may cost. A template comes with a model file and messages come from clients, so neither may
// decide how long a rendering runs, how much memory it takes or how deep the stack grows.
inline constexpr size_t kMaxSourceBytes = 256 << 10;
inline constexpr int kMaxParseNesting = 100;     // expressions inside expressions, blocks inside blocks
inline constexpr int kMaxEvaluationDepth = 300;  // nested blocks, expressions and macro calls while rendering
inline constexpr int kMaxValueDepth = 32;        // lists inside lists
inline constexpr size_t kMaxTextBytes = 16 << 20;  // one string; so the output, too
inline constexpr size_t kMaxListItems = 256 << 10;
inline constexpr size_t kMaxDictEntries = 4096;
inline constexpr int64_t kMaxRangeItems = 100'000;
inline constexpr uint64_t kMaxSteps = 10'000'000;
inline constexpr uint64_t kMaxAllocatedBytes = 256 << 20;  // over a whole rendering, freed or not

// Bytes of a string that may be read for one step.
inline constexpr uint64_t kBytesPerStep = 64;

// What one rendering has used so far. Owned by the rendering, used by its thread only.
class Budget {
 public:
  // One node evaluated, one item visited.
  absl::Status Step(uint64_t count = 1) {
    steps_ += count;
    if (steps_ > kMaxSteps) [[unlikely]] {
      return Error("the template takes more than the limit of ", kMaxSteps, " evaluation steps");
    }
    return absl::OkStatus();
  }

  // A string of `bytes` is searched or compared.
  absl::Status Scan(uint64_t bytes) { return Step(1 + bytes / kBytesPerStep); }

  // Memory that a new value takes.
  absl::Status Allocate(uint64_t bytes) {
    allocated_bytes_ += bytes;
    if (allocated_bytes_ > kMaxAllocatedBytes) [[unlikely]] {
      return Error("the template's values take more than the limit of ", kMaxAllocatedBytes, " bytes");
    }
    return Scan(bytes);
  }

 private:
  uint64_t steps_ = 0;
  uint64_t allocated_bytes_ = 0;
};

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_LIMITS_H_
