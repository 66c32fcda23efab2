#include "kv_transfer/kv_coverage.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace baton {
namespace {

using Intervals = std::map<uint32_t, uint32_t>;

bool Overlaps(const Intervals& intervals, TokenRange tokens) {
  const auto next = intervals.lower_bound(tokens.begin);
  if (next != intervals.end() && next->first < tokens.end) return true;
  return next != intervals.begin() && std::prev(next)->second > tokens.begin;
}

// `tokens` overlaps nothing in `intervals`.
void Insert(TokenRange tokens, Intervals* intervals) {
  auto next = intervals->lower_bound(tokens.begin);
  if (next != intervals->end() && next->first == tokens.end) {
    tokens.end = next->second;
    next = intervals->erase(next);
  }
  if (next != intervals->begin() && std::prev(next)->second == tokens.begin) {
    std::prev(next)->second = tokens.end;
  } else {
    intervals->emplace_hint(next, tokens.begin, tokens.end);
  }
}

}  // namespace

KvCoverage::KvCoverage(const KvGeometry& geometry, std::vector<TokenRange> wanted) {
  for (uint32_t group = 0; group < wanted.size(); ++group) {
    const size_t layers = geometry.groups[group].layers.size();
    groups_.push_back({wanted[group], std::vector<Intervals>(layers)});
    if (!wanted[group].empty()) wanted_ += uint64_t{layers} * wanted[group].size();
  }
  missing_ = wanted_;
}

absl::Status KvCoverage::Add(uint32_t group_index, LayerRange layers, TokenRange tokens) {
  const auto refuse = [&](const char* why) {
    return absl::InvalidArgumentError(absl::StrCat("group ", group_index, ", layers [", layers.begin, ", ",
                                                   layers.end, "), tokens [", tokens.begin, ", ", tokens.end,
                                                   "): ", why));
  };
  if (group_index >= groups_.size()) return refuse("no such group");
  Group& group = groups_[group_index];
  if (layers.empty() || layers.end > group.present.size()) return refuse("no such layers");
  if (tokens.empty() || !group.wanted.contains(tokens)) return refuse("not wanted");
  for (uint32_t layer = layers.begin; layer < layers.end; ++layer) {
    if (Overlaps(group.present[layer], tokens)) return refuse("came before");
  }
  for (uint32_t layer = layers.begin; layer < layers.end; ++layer) Insert(tokens, &group.present[layer]);
  missing_ -= uint64_t{layers.size()} * tokens.size();
  return absl::OkStatus();
}

absl::Status KvCoverage::CheckInvariants() const {
  uint64_t present = 0;
  for (const Group& group : groups_) {
    for (const Intervals& intervals : group.present) {
      uint32_t last_end = 0;
      bool first = true;
      for (const auto& [begin, end] : intervals) {
        if (begin >= end || !group.wanted.contains({begin, end}) || (!first && begin <= last_end)) {
          return absl::InternalError(absl::StrCat("interval [", begin, ", ", end, ") is out of place"));
        }
        present += end - begin;
        last_end = end;
        first = false;
      }
    }
  }
  if (present + missing_ != wanted_) {
    return absl::InternalError(
        absl::StrCat(present, " cells present and ", missing_, " missing of ", wanted_));
  }
  return absl::OkStatus();
}

}  // namespace baton
