#include "kv_transfer/kv_backend_registry.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace baton {

std::vector<std::string> NamesOf(const std::vector<KvBackendKind>& kinds) {
  std::vector<std::string> names;
  for (const KvBackendKind& kind : kinds) names.push_back(kind.name);
  return names;
}

absl::StatusOr<std::vector<KvBackendKind>> KvBackendRegistry::Select(
    const std::vector<std::string>& names) const {
  const auto invalid = [this](const std::string& what) {
    const std::string known = absl::StrJoin(
        kinds_, ", ", [](std::string* out, const KvBackendKind& kind) { out->append(kind.name); });
    return absl::InvalidArgumentError(absl::StrCat("transports: ", what, "; there are ", known));
  };
  if (names.empty()) return invalid("none is named");
  std::vector<KvBackendKind> selected;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const auto found = std::find_if(kinds_.begin(), kinds_.end(),
                                    [&name](const KvBackendKind& kind) { return kind.name == name; });
    if (found == kinds_.end()) return invalid(absl::StrCat("\"", name, "\" is none"));
    if (!seen.insert(name).second) return invalid(absl::StrCat("\"", name, "\" is named twice"));
    selected.push_back(*found);
  }
  return selected;
}

}  // namespace baton
