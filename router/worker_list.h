#ifndef BATON_ROUTER_WORKER_LIST_H_
#define BATON_ROUTER_WORKER_LIST_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace baton {

// Where a role's workers are: entries of an option, each host:port. A host that is an address, or
// "localhost", is one worker; any other is a DNS name that stands for every address it has at the moment, as
// a headless Kubernetes service does.

// INVALID_ARGUMENT names the entry that is not host:port.
absl::Status CheckWorkerList(const std::vector<std::string>& entries);

// Addresses of all entries. Blocks on DNS. A name that does not resolve now is left out and named in
// `unresolved`.
std::set<std::string> ResolveWorkers(const std::vector<std::string>& entries,
                                     std::vector<std::string>* unresolved);

}  // namespace baton

#endif  // BATON_ROUTER_WORKER_LIST_H_
