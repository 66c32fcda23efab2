#ifndef BATON_COMMON_STRING_VIEWS_H_
#define BATON_COMMON_STRING_VIEWS_H_

#include <string_view>

#include "absl/strings/string_view.h"

namespace baton {

// The packaged Abseil has a string_view type of its own that does not convert to or from the standard one.
// Interfaces here take std::string_view; these two meet Abseil's functions.
inline absl::string_view AbslView(std::string_view view) {
  return absl::string_view(view.data(), view.size());
}
inline std::string_view StdView(absl::string_view view) { return std::string_view(view.data(), view.size()); }

}  // namespace baton

#endif  // BATON_COMMON_STRING_VIEWS_H_
