#include "kv_transfer/piece_coalescer.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace baton {
namespace {

// Grows `piece` by `other` when they share a whole edge.
bool Join(const KvPiece& other, KvPiece* piece) {
  if (other.group != piece->group) return false;
  const auto grow = [](const auto& from, auto* to) {
    if (from.end == to->begin) {
      to->begin = from.begin;
    } else if (to->end == from.begin) {
      to->end = from.end;
    } else {
      return false;
    }
    return true;
  };
  if (other.tokens == piece->tokens) return grow(other.layers, &piece->layers);
  if (other.layers == piece->layers) return grow(other.tokens, &piece->tokens);
  return false;
}

uint64_t CeilDiv(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit; }

}  // namespace

PieceCoalescer::PieceCoalescer(const KvGeometry& geometry, std::vector<TokenRange> wanted,
                               uint32_t align_tokens, PieceLimits limits)
    : geometry_(geometry), wanted_(std::move(wanted)), align_tokens_(align_tokens), limits_(limits) {}

std::vector<KvPiece> PieceCoalescer::Computed(LayerRange model_layers, TokenRange tokens) {
  std::vector<KvPiece> pieces;
  for (uint32_t group = 0; group < wanted_.size(); ++group) {
    KvPiece piece{
        .group = group,
        .layers = geometry_.LayersOf(group, model_layers),
        .tokens = {std::max(tokens.begin, wanted_[group].begin), std::min(tokens.end, wanted_[group].end)}};
    if (piece.layers.empty() || piece.tokens.empty()) continue;
    for (size_t i = 0; i < held_.size();) {
      if (Join(held_[i], &piece)) {
        held_.erase(held_.begin() + i);
        i = 0;  // the grown piece may now share an edge with one that it did not before
      } else {
        ++i;
      }
    }
    if (PieceBytes(geometry_, piece) < limits_.min_bytes) {
      held_.push_back(piece);
    } else {
      Cut(piece, &pieces);
    }
  }
  return pieces;
}

std::vector<KvPiece> PieceCoalescer::Flush() {
  std::vector<KvPiece> pieces;
  for (const KvPiece& piece : held_) Cut(piece, &pieces);
  held_.clear();
  return pieces;
}

void PieceCoalescer::Cut(const KvPiece& piece, std::vector<KvPiece>* pieces) const {
  const uint64_t token_bytes = geometry_.token_bytes(piece.group);
  const uint64_t layer_bytes = token_bytes * piece.tokens.size();
  const uint64_t layers_each = std::max<uint64_t>(1, limits_.max_bytes / layer_bytes);
  const uint64_t layer_cuts = CeilDiv(piece.layers.size(), layers_each);

  // Tokens are cut at multiples of `unit`, and only where one layer is too large by itself.
  const uint64_t tokens_each = std::max<uint64_t>(1, limits_.max_bytes / token_bytes);
  const uint64_t unit = std::min<uint64_t>(align_tokens_, std::bit_floor(tokens_each));
  const uint64_t first_unit = piece.tokens.begin / unit;
  const uint64_t units = CeilDiv(piece.tokens.end, unit) - first_unit;
  const uint64_t token_cuts = layer_bytes <= limits_.max_bytes ? 1 : CeilDiv(units, tokens_each / unit);

  // Parts of nearly equal size, so that none is a small remainder.
  const auto bound = [](uint64_t size, uint64_t part, uint64_t parts) { return size * part / parts; };
  for (uint64_t i = 0; i < layer_cuts; ++i) {
    for (uint64_t j = 0; j < token_cuts; ++j) {
      KvPiece part = piece;
      const uint32_t layers = piece.layers.size();
      part.layers.begin = piece.layers.begin + static_cast<uint32_t>(bound(layers, i, layer_cuts));
      part.layers.end = piece.layers.begin + static_cast<uint32_t>(bound(layers, i + 1, layer_cuts));
      const uint64_t begin = (first_unit + bound(units, j, token_cuts)) * unit;
      const uint64_t end = (first_unit + bound(units, j + 1, token_cuts)) * unit;
      part.tokens.begin = static_cast<uint32_t>(std::max<uint64_t>(piece.tokens.begin, begin));
      part.tokens.end = static_cast<uint32_t>(std::min<uint64_t>(piece.tokens.end, end));
      pieces->push_back(part);
    }
  }
}

}  // namespace baton
