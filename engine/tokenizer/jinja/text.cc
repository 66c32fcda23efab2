#include "engine/tokenizer/jinja/text.h"

#include <algorithm>
#include <utility>

#include "engine/tokenizer/jinja/code_points.h"

namespace baton::jinja {
namespace {

// The part of `text` that is left when code points for which `drops` holds are taken off its ends.
template <typename Predicate>
std::pair<size_t, size_t> StripRange(std::string_view text, bool start, bool end, const Predicate& drops) {
  size_t first = 0;
  size_t last = text.size();
  while (start && first < last && drops(text.substr(first, CodePointBytes(text, first)))) {
    first += CodePointBytes(text, first);
  }
  while (end && last > first) {
    const size_t previous = PreviousCodePoint(text, last);
    if (!drops(text.substr(previous, last - previous))) break;
    last = previous;
  }
  return {first, last};
}

}  // namespace

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) segments_.push_back({static_cast<uint32_t>(bytes_.size()), origin});
}

size_t Text::SegmentAt(size_t offset) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), offset,
                                      [](size_t at, const Segment& segment) { return at < segment.end; });
  return after - segments_.begin();
}

Origin Text::OriginOf(size_t begin, size_t end) const {
  if (begin >= end) return Origin::kTemplate;
  for (size_t i = SegmentAt(begin); i < segments_.size(); ++i) {
    if (segments_[i].origin == Origin::kMessage) return Origin::kMessage;
    if (segments_[i].end >= end) break;
  }
  return Origin::kTemplate;
}

void Text::Append(std::string_view bytes, Origin origin) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  const auto end = static_cast<uint32_t>(bytes_.size());
  if (!segments_.empty() && segments_.back().origin == origin) {
    segments_.back().end = end;
  } else {
    segments_.push_back({end, origin});
  }
}

void Text::Append(const Text& other, size_t begin, size_t end) {
  if (begin >= end) return;
  for (size_t i = other.SegmentAt(begin); begin < end; ++i) {
    const size_t stop = std::min<size_t>(end, other.segments_[i].end);
    Append(other.bytes().substr(begin, stop - begin), other.segments_[i].origin);
    begin = stop;
  }
}

Text Text::Slice(size_t begin, size_t end) const {
  Text slice;
  slice.Append(*this, begin, end);
  return slice;
}

Text Text::Strip(bool start, bool end) const {
  const auto [first, last] =
      StripRange(bytes_, start, end, [](std::string_view c) { return IsSpace(CodePointAt(c, 0)); });
  return Slice(first, last);
}

Text Text::Strip(std::string_view characters, bool start, bool end) const {
  // A code point is never found inside another: UTF-8 is self-synchronising.
  const auto [first, last] = StripRange(
      bytes_, start, end, [&](std::string_view c) { return characters.find(c) != std::string_view::npos; });
  return Slice(first, last);
}

Text Text::WithBytes(std::string bytes) const {
  if (segments_.size() <= 1 || CountCodePoints(bytes) != CountCodePoints(bytes_)) {
    return Text(std::move(bytes), origin());
  }
  Text mapped;
  size_t begin = 0;
  size_t source = 0;
  size_t target = 0;
  for (const Segment& segment : segments_) {
    for (; source < segment.end; source += CodePointBytes(bytes_, source))
      target += CodePointBytes(bytes, target);
    mapped.Append(std::string_view(bytes).substr(begin, target - begin), segment.origin);
    begin = target;
  }
  return mapped;
}

}  // namespace baton::jinja
