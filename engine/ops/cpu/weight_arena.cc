#include "engine/ops/cpu/weight_arena.h"

#include <algorithm>

#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{64} << 20;  // untouched pages of the last one cost nothing
constexpr uint64_t kAlignment = 64;

}  // namespace

absl::StatusOr<std::byte*> WeightArena::Allocate(uint64_t bytes) {
  const uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (limit_ > 0 && (bytes_ > limit_ || rounded > limit_ - bytes_)) {
    return absl::ResourceExhaustedError(
        StrCat("packed weights take more than ", limit_, " bytes, the limit of weight_memory"));
  }
  if (chunks_.empty() || chunks_.back().bytes() - used_ < rounded) {
    ASSIGN_OR_RETURN(DeviceBuffer chunk, device_->Allocate(std::max(rounded, kChunkBytes)));
    chunks_.push_back(std::move(chunk));
    used_ = 0;
  }
  std::byte* const data = chunks_.back().span().data + used_;
  used_ += rounded;
  bytes_ += rounded;
  return data;
}

}  // namespace baton
