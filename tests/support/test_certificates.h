#ifndef BATON_TESTS_SUPPORT_TEST_CERTIFICATES_H_
#define BATON_TESTS_SUPPORT_TEST_CERTIFICATES_H_

#include <string>

#include "common/certificate_authority.h"
#include "common/tls_files.h"

// Certificates for tests over real TLS, valid for an hour before and after now, in the test's own folder.
namespace baton {

CertificateAuthority MakeTestAuthority();

// A subject on loopback, as `baton certs` makes it.
CertificateAuthority::Subject TestSubject(const std::string& uri);

// Returns its path. Moved into place: whoever watches the file sees all of it.
std::string WriteTestFile(const std::string& name, const std::string& text);

// What a process has that is `subject` by the word of `issuer` and believes `trusted`: ca.pem, NAME.pem and
// NAME.key.
TlsFiles WriteTlsFiles(const std::string& name, const CertificateAuthority& trusted,
                       const CertificateAuthority& issuer, const CertificateAuthority::Subject& subject);

}  // namespace baton

#endif  // BATON_TESTS_SUPPORT_TEST_CERTIFICATES_H_
