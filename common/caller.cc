#include "common/caller.h"

#include <algorithm>
#include <vector>

#include "grpc/grpc_security_constants.h"

namespace baton {
namespace {

struct NamedRole {
  CallerRole role;
  std::string_view name;
};

constexpr NamedRole kRoles[] = {
    {CallerRole::kClient, "client"},   {CallerRole::kOperator, "operator"}, {CallerRole::kRouter, "router"},
    {CallerRole::kPrefill, "prefill"}, {CallerRole::kDecode, "decode"},
};

}  // namespace

std::string_view CallerRoleName(CallerRole role) {
  for (const NamedRole& each : kRoles) {
    if (each.role == role) return each.name;
  }
  return "unchecked";
}

std::optional<CallerRole> ParseCallerRole(std::string_view name) {
  for (const NamedRole& each : kRoles) {
    if (each.name == name) return each.role;
  }
  return std::nullopt;
}

std::optional<CallerIdentity> ParseIdentity(std::string_view prefix, std::string_view uri) {
  if (prefix.empty() || !uri.starts_with(prefix)) return std::nullopt;
  const std::string_view rest = uri.substr(prefix.size());
  const size_t slash = std::min(rest.find('/'), rest.size());
  const std::optional<CallerRole> role = ParseCallerRole(rest.substr(0, slash));
  if (!role.has_value()) return std::nullopt;
  return CallerIdentity{*role, std::string(rest.substr(std::min(slash + 1, rest.size())))};
}

std::string PeerIdentity(const grpc::AuthContext& peer) {
  const std::vector<grpc::string_ref> uris = peer.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME);
  return uris.size() == 1 ? std::string(uris[0].data(), uris[0].size()) : "";
}

}  // namespace baton
