#ifndef BATON_KV_TRANSFER_KV_COVERAGE_H_
#define BATON_KV_TRANSFER_KV_COVERAGE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "engine/kv/kv_geometry.h"
#include "engine/kv/ranges.h"

namespace baton {

// Which of the wanted (layer, token) cells have come. Each comes exactly once. Its size is bounded by the
// number of gaps, never by the number of tokens. A value type.
class KvCoverage {
 public:
  // `wanted` is by cache group.
  KvCoverage(const KvGeometry& geometry, std::vector<TokenRange> wanted);

  // INVALID_ARGUMENT, and nothing added, when a cell is not wanted or has come before. The layers are the
  // group's own.
  absl::Status Add(uint32_t group, LayerRange layers, TokenRange tokens);
  bool complete() const { return missing_ == 0; }
  uint64_t missing() const { return missing_; }  // cells

  // INTERNAL when the cells present and missing do not add up to those wanted.
  absl::Status CheckInvariants() const;

 private:
  struct Group {
    TokenRange wanted;
    std::vector<std::map<uint32_t, uint32_t>>
        present;  // [layer], token begin -> end, disjoint and never touching
  };

  std::vector<Group> groups_;
  uint64_t wanted_ = 0;  // cells
  uint64_t missing_ = 0;
};

}  // namespace baton

#endif  // BATON_KV_TRANSFER_KV_COVERAGE_H_
