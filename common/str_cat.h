#ifndef BATON_COMMON_STR_CAT_H_
#define BATON_COMMON_STR_CAT_H_

#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/string_views.h"

namespace baton {

namespace str_cat_internal {
template <typename T>
const T& Part(const T& part) {
  return part;
}
inline absl::string_view Part(std::string_view part) { return AbslView(part); }
}  // namespace str_cat_internal

// absl::StrCat that takes std::string_view too.
template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  return absl::StrCat(str_cat_internal::Part(parts)...);
}

}  // namespace baton

#endif  // BATON_COMMON_STR_CAT_H_
