#ifndef BATON_COMMON_VERSION_H_
#define BATON_COMMON_VERSION_H_

#include <string_view>

namespace baton {

// Of the whole product: --version, GetServerInfo and baton_build_info.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace baton

#endif  // BATON_COMMON_VERSION_H_
