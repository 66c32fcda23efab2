#ifndef BATON_ENGINE_TOKENIZER_JINJA_TEXT_H_
#define BATON_ENGINE_TOKENIZER_JINJA_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::jinja {

// Who wrote a character. Only what the template wrote may become a control token.
enum class Origin : bool { kTemplate, kMessage };

// A string that knows the origin of each of its bytes: a value type, well-formed UTF-8, at most 4 GiB (the
// budget stops far below). Cutting and joining keep origins exactly; there is no other way to make a string
// out of strings.
class Text {
 public:
  // Bytes [previous end, end) share one origin; neighbours differ.
  struct Segment {
    uint32_t end;
    Origin origin;
  };

  Text() = default;
  Text(std::string bytes, Origin origin);

  std::string_view bytes() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  const std::vector<Segment>& segments() const { return segments_; }
  // Memory that it takes, about.
  size_t allocated_bytes() const { return bytes_.size() + segments_.size() * sizeof(Segment) + 64; }

  // kMessage when any byte of [begin, end) came out of a message: the origin of what is computed from the
  // whole.
  Origin OriginOf(size_t begin, size_t end) const;
  Origin origin() const { return OriginOf(0, size()); }

  void Append(std::string_view bytes, Origin origin);
  void Append(const Text& other) { Append(other, 0, other.size()); }
  // Bytes [begin, end) of `other`, which must not be this.
  void Append(const Text& other, size_t begin, size_t end);

  Text Slice(size_t begin, size_t end) const;
  // Without white space at the start, at the end.
  Text Strip(bool start, bool end) const;
  // Without code points that occur in `characters` at the start, at the end.
  Text Strip(std::string_view characters, bool start, bool end) const;
  // The same text with other letters: exact when `bytes` has as many code points, otherwise all of it counts
  // as message text when any of this does.
  Text WithBytes(std::string bytes) const;

 private:
  // Index of the segment that holds byte `offset` < size().
  size_t SegmentAt(size_t offset) const;

  std::string bytes_;
  std::vector<Segment> segments_;
};

inline Origin Either(Origin a, Origin b) { return a == Origin::kMessage ? a : b; }

}  // namespace baton::jinja

#endif  // BATON_ENGINE_TOKENIZER_JINJA_TEXT_H_
