#ifndef BATON_CLIENT_WORKER_TABLE_H_
#define BATON_CLIENT_WORKER_TABLE_H_

#include <string>
#include <vector>

#include "baton/v1/control.pb.h"

namespace baton {

// The router's workers as lines of text: a head, then one line for each worker. Load and blocks are those
// that the worker last reported.
std::vector<std::string> WorkerTable(const v1::ListWorkersResponse& workers);

// The router's own line above it.
std::string RouterLine(const v1::GetServerInfoResponse& info, const v1::GetLoadResponse& load);

}  // namespace baton

#endif  // BATON_CLIENT_WORKER_TABLE_H_
