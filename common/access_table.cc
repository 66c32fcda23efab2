#include "common/access_table.h"

#include <cstdint>

#include "common/str_cat.h"

namespace baton {
namespace {

constexpr uint32_t Bit(CallerRole role) { return 1u << static_cast<uint32_t>(role); }
constexpr uint32_t Bit(PortRole port) { return 1u << static_cast<uint32_t>(port); }

constexpr uint32_t kAnyPort = Bit(PortRole::kRouter) | Bit(PortRole::kPrefill) | Bit(PortRole::kDecode);
constexpr uint32_t kWorkerPorts = Bit(PortRole::kPrefill) | Bit(PortRole::kDecode);

constexpr uint32_t kNobodyInParticular = 1u << 31;  // also callers without any identity
constexpr uint32_t kOperators = Bit(CallerRole::kOperator);
constexpr uint32_t kClients = Bit(CallerRole::kClient) | kOperators;
constexpr uint32_t kRouters = Bit(CallerRole::kRouter) | kOperators;
constexpr uint32_t kAnybody = kClients | kRouters | Bit(CallerRole::kPrefill) | Bit(CallerRole::kDecode);

struct Row {
  uint32_t ports;
  std::string_view method;  // or a service, ending in '/'; the first row that fits decides
  uint32_t roles;
};

constexpr Row kTable[] = {
    {Bit(PortRole::kRouter), "/baton.v1.Inference/", kClients},
    {Bit(PortRole::kRouter), "/baton.v1.Control/Drain", kOperators},
    {Bit(PortRole::kRouter), "/baton.v1.Control/Abort", kOperators},
    {Bit(PortRole::kRouter), "/baton.v1.Control/", kClients},
    {Bit(PortRole::kPrefill), "/baton.v1.PrefillWorker/", Bit(CallerRole::kRouter)},
    {Bit(PortRole::kDecode), "/baton.v1.DecodeWorker/", Bit(CallerRole::kRouter)},
    {Bit(PortRole::kDecode), "/baton.v1.KvTransfer/", Bit(CallerRole::kPrefill)},
    {kWorkerPorts, "/baton.v1.Control/Drain", kOperators},
    {kWorkerPorts, "/baton.v1.Control/", kRouters},
    {kAnyPort, "/grpc.health.v1.Health/Check", kAnybody | kNobodyInParticular},
    {kAnyPort, "/grpc.health.v1.Health/", kAnybody},
    // Tools ask for v1 first, which is not served, and go on with v1alpha only when they hear just that.
    {Bit(PortRole::kRouter), "/grpc.reflection.v1.ServerReflection/", kClients},
    {Bit(PortRole::kRouter), "/grpc.reflection.v1alpha.ServerReflection/", kClients},
    {kWorkerPorts, "/grpc.reflection.v1.ServerReflection/", kOperators},
    {kWorkerPorts, "/grpc.reflection.v1alpha.ServerReflection/", kOperators},
};

bool Fits(const Row& row, std::string_view method) {
  return row.method.ends_with('/') ? method.starts_with(row.method) : method == row.method;
}

uint32_t RolesOf(PortRole port, std::string_view method) {
  for (const Row& row : kTable) {
    if ((row.ports & Bit(port)) != 0 && Fits(row, method)) return row.roles;
  }
  return 0;
}

}  // namespace

absl::Status CheckAccess(PortRole port, std::string_view method,
                         const std::optional<CallerIdentity>& caller) {
  const uint32_t roles = RolesOf(port, method);
  if ((roles & kNobodyInParticular) != 0) return absl::OkStatus();
  if (!caller.has_value()) {
    return absl::UnauthenticatedError("a certificate or a bearer token of this deployment is needed");
  }
  if ((roles & Bit(caller->role)) != 0) return absl::OkStatus();
  return absl::PermissionDeniedError(
      StrCat("the role ", CallerRoleName(caller->role), " may not call this method here"));
}

}  // namespace baton
