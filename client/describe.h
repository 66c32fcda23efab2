#ifndef BATON_CLIENT_DESCRIBE_H_
#define BATON_CLIENT_DESCRIBE_H_

#include <utility>
#include <vector>

#include "common/option.h"

namespace baton {

// A command's options out of the groups that it shares with others, in order.
template <typename... Groups>
std::vector<Option> Joined(std::vector<Option> first, Groups... groups) {
  (..., [&first](std::vector<Option> group) {
    for (Option& option : group) first.push_back(std::move(option));
  }(std::move(groups)));
  return first;
}

}  // namespace baton

#endif  // BATON_CLIENT_DESCRIBE_H_
