#ifndef BATON_COMMON_UTF8_H_
#define BATON_COMMON_UTF8_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace baton {

// The length in bytes, 1 to 4, of the well-formed code point (no overlong form, no surrogate, nothing above
// U+10FFFF) that `text` begins with; 0 when it begins with none.
size_t CodePointLength(std::string_view text);

bool IsValidUtf8(std::string_view text);

// `text` with each maximal invalid part replaced by one U+FFFD, as the Unicode standard recommends
// (section 3.9).
std::string ReplaceInvalidUtf8(std::string_view text);

// The longest prefix of `text`, at most `max_bytes` long, that does not end inside a code point. `text` is
// valid UTF-8.
std::string_view TruncateUtf8(std::string_view text, size_t max_bytes);

}  // namespace baton

#endif  // BATON_COMMON_UTF8_H_
