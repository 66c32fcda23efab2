#include "kv_transfer/transfer_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/check.h"

namespace baton {
namespace {

void Append(DeviceSpan span, std::vector<DeviceSpan>* spans) {
  if (!spans->empty() && spans->back().data + spans->back().bytes == span.data) {
    spans->back().bytes += span.bytes;
  } else {
    spans->push_back(span);
  }
}

}  // namespace

uint32_t SegmentTokens(uint32_t block_tokens, uint32_t peer_block_tokens) {
  return std::min(block_tokens, peer_block_tokens);
}

absl::Status CheckPiece(const KvGeometry& geometry, const KvPiece& piece) {
  const auto invalid = [&piece](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat("piece ", piece.id, ": ", what));
  };
  if (piece.group >= geometry.groups.size()) {
    return invalid(absl::StrCat("group is ", piece.group, ", there are ", geometry.groups.size()));
  }
  const size_t layers = geometry.groups[piece.group].layers.size();
  if (piece.layers.empty() || piece.layers.end > layers) {
    return invalid(absl::StrCat("layers are [", piece.layers.begin, ", ", piece.layers.end,
                                "), the group has ", layers));
  }
  if (piece.tokens.empty()) {
    return invalid(absl::StrCat("tokens are [", piece.tokens.begin, ", ", piece.tokens.end, ")"));
  }
  return absl::OkStatus();
}

uint64_t PieceBytes(const KvGeometry& geometry, const KvPiece& piece) {
  return geometry.token_bytes(piece.group) * piece.layers.size() * piece.tokens.size();
}

std::vector<DeviceSpan> PieceSpans(const KvGeometry& geometry, const BlockPool& pool,
                                   absl::Span<const uint32_t> table, uint32_t segment_tokens,
                                   const KvPiece& piece) {
  BATON_CHECK(TokensFit(geometry.block_tokens, table.size(), piece.tokens));
  const CacheGroup& group = geometry.groups[piece.group];
  const uint32_t block_tokens = geometry.block_tokens;
  const uint64_t row_bytes = uint64_t{group.head_dim} * KvTypeBytes(geometry.type);
  const uint32_t rows = 2 * group.kv_heads;  // K's heads, then V's
  std::vector<DeviceSpan> spans;
  for (uint32_t layer = piece.layers.begin; layer < piece.layers.end; ++layer) {
    for (uint32_t token = piece.tokens.begin; token < piece.tokens.end;) {
      const uint32_t in_segment = token % segment_tokens;
      const uint32_t count = std::min(piece.tokens.end - token, segment_tokens - in_segment);
      const DeviceSpan plane = pool.plane(layer, table[token / block_tokens % table.size()]);
      const uint32_t offset = token % block_tokens;
      if (count == block_tokens) {
        Append(plane, &spans);
      } else {
        for (uint32_t row = 0; row < rows; ++row) {
          Append(plane.subspan((uint64_t{row} * block_tokens + offset) * row_bytes, count * row_bytes),
                 &spans);
        }
      }
      token += count;
    }
  }
  return spans;
}

bool TokensFit(uint32_t block_tokens, size_t slots, TokenRange tokens) {
  if (tokens.empty()) return true;
  return tokens.begin / block_tokens + slots > (tokens.end - 1) / block_tokens;
}

std::vector<TokenRange> WantedAfter(const KvGeometry& geometry, uint32_t prompt_tokens) {
  std::vector<TokenRange> wanted;
  for (uint32_t group = 0; group < geometry.groups.size(); ++group) {
    wanted.push_back(geometry.NeededAfter(group, prompt_tokens));
  }
  return wanted;
}

uint64_t WantedBytes(const KvGeometry& geometry, absl::Span<const TokenRange> wanted) {
  uint64_t bytes = 0;
  for (uint32_t group = 0; group < wanted.size(); ++group) {
    if (wanted[group].empty()) continue;
    bytes += geometry.token_bytes(group) * geometry.groups[group].layers.size() * wanted[group].size();
  }
  return bytes;
}

}  // namespace baton
