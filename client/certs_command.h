#ifndef BATON_CLIENT_CERTS_COMMAND_H_
#define BATON_CLIENT_CERTS_COMMAND_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/option.h"
#include "common/options.h"

namespace baton {

struct CertsOptions {
  std::vector<std::string> folder;  // One, from the command line.
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  std::string identity_prefix = "spiffe://baton.local/";
  uint32_t days = 90;
};

Program CertsProgram();
std::vector<Option> Describe(CertsOptions* options);

// `baton certs`: a certificate authority for development, and a certificate for each role, as files "ca.pem",
// "ca.key", "router.pem", "router.key" ... of one folder, keys for their owner alone. An authority that is
// there already is kept, so that running services take the new certificates up; what is written replaces a
// file at once, never by half.
absl::Status RunCerts(const CertsOptions& options, std::FILE* out);

}  // namespace baton

#endif  // BATON_CLIENT_CERTS_COMMAND_H_
