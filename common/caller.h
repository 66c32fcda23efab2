#ifndef BATON_COMMON_CALLER_H_
#define BATON_COMMON_CALLER_H_

#include <optional>
#include <string>
#include <string_view>

#include "grpcpp/security/auth_context.h"

namespace baton {

// What a caller may be. Services and operators prove it by a certificate, clients and operators by a bearer
// token too.
enum class CallerRole {
  kUnchecked,  // a plaintext port without tokens asks nobody
  kClient,
  kOperator,  // a client that may also drain and abort
  kRouter,
  kPrefill,
  kDecode,
};

// "client", "prefill": as in identities, token files and logs.
std::string_view CallerRoleName(CallerRole role);
std::optional<CallerRole> ParseCallerRole(std::string_view name);  // kUnchecked has no name to parse

// Who makes a call.
struct CallerIdentity {
  CallerRole role = CallerRole::kUnchecked;
  // Of a token's client, or what stands behind the role in a certificate's identity. Empty: none is known.
  std::string name;
};

// A certificate's identity is its one URI among the subject alternative names, "<prefix><role>" or
// "<prefix><role>/<name>": spiffe://baton.local/prefill/a7. Nothing unless `uri` is of that form.
std::optional<CallerIdentity> ParseIdentity(std::string_view prefix, std::string_view uri);

// The one URI of the peer's certificate; empty in plaintext, or where it has none or several.
std::string PeerIdentity(const grpc::AuthContext& peer);

}  // namespace baton

#endif  // BATON_COMMON_CALLER_H_
