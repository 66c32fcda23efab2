#ifndef BATON_COMMON_TLS_FILES_H_
#define BATON_COMMON_TLS_FILES_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton {

// PEM files. All three: this process proves its identity and demands one. `ca` alone: a client that checks
// whom it talks to and shows nothing of its own. None: no TLS.
struct TlsFiles {
  std::string ca;    // the certificates of the authorities that are believed
  std::string cert;  // this process's certificate, and those between it and the authority
  std::string key;   // its private key

  bool any() const { return !ca.empty() || !cert.empty() || !key.empty(); }
};

// What a certificate says of its holder.
struct CertificateFacts {
  std::string identity;  // its one URI among the subject alternative names; empty: none or several
  absl::Time expires;
};

// Reads the files as the library will, which itself says nothing of what is wrong with them. INVALID_ARGUMENT
// names the option and the path: not readable, not PEM, a key that is not the certificate's, a certificate
// that none of the authorities vouches for or whose time is not now. The facts are empty without a
// certificate.
absl::StatusOr<CertificateFacts> CheckTlsFiles(const TlsFiles& files);

}  // namespace baton

#endif  // BATON_COMMON_TLS_FILES_H_
