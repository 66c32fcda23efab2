#ifndef BATON_COMMON_ERROR_REASONS_H_
#define BATON_COMMON_ERROR_REASONS_H_

#include <string_view>

// The reasons that one process gives and another acts on, as they stand in an ErrorInfo. Reasons for people
// alone stay where they are given.
namespace baton {

// UNAVAILABLE: the process or the leg ends by a drain. Nothing is wrong with the request: it goes on
// elsewhere.
inline constexpr std::string_view kReasonDraining = "DRAINING";
// UNAVAILABLE: the request was meant for another process at this address.
inline constexpr std::string_view kReasonWrongInstance = "WRONG_INSTANCE";
// The KV did not get from one worker to the other; who is at fault is not known.
inline constexpr std::string_view kReasonHandoffFailed = "HANDOFF_FAILED";
// RESOURCE_EXHAUSTED: the reader of a stream is too slow.
inline constexpr std::string_view kReasonSlowReader = "SLOW_READER";

}  // namespace baton

#endif  // BATON_COMMON_ERROR_REASONS_H_
