#ifndef BATON_COMMON_CERTIFICATE_AUTHORITY_H_
#define BATON_COMMON_CERTIFICATE_AUTHORITY_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace baton {

// PEM.
struct IssuedCertificate {
  std::string certificate;
  std::string key;
};

// A small certificate authority with a key of its own, for development and tests. It signs what it is asked
// to. Keys are on the curve P-256.
class CertificateAuthority {
 public:
  struct Subject {
    std::string name;                // the common name, for people
    std::string uri;                 // its identity: see caller.h
    std::vector<std::string> hosts;  // DNS names and IP addresses that clients may dial it by
    bool is_server = false;          // it may prove itself to those that dial it
    bool is_client = false;          // and to those that it dials
    absl::Time from;
    absl::Time until;
  };

  static absl::StatusOr<CertificateAuthority> Make(const std::string& name, absl::Time from,
                                                   absl::Time until);
  // One that was made before.
  static absl::StatusOr<CertificateAuthority> Parse(const IssuedCertificate& pem);
  ~CertificateAuthority();
  CertificateAuthority(CertificateAuthority&&) noexcept;

  absl::StatusOr<IssuedCertificate> Issue(const Subject& subject) const;
  // Its own.
  const IssuedCertificate& pem() const { return pem_; }

 private:
  struct Parts;
  CertificateAuthority(std::unique_ptr<Parts> parts, IssuedCertificate pem);

  std::unique_ptr<Parts> parts_;
  IssuedCertificate pem_;
};

}  // namespace baton

#endif  // BATON_COMMON_CERTIFICATE_AUTHORITY_H_
