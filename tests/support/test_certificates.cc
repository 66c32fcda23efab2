#include "tests/support/test_certificates.h"

#include <cstdio>
#include <fstream>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/check.h"
#include "common/str_cat.h"
#include "gtest/gtest.h"

namespace baton {

CertificateAuthority MakeTestAuthority() {
  return *CertificateAuthority::Make("test", absl::Now() - absl::Hours(1), absl::Now() + absl::Hours(1));
}

CertificateAuthority::Subject TestSubject(const std::string& uri) {
  return {.name = "test",
          .uri = uri,
          .hosts = {"localhost", "127.0.0.1"},
          .is_server = true,
          .is_client = true,
          .from = absl::Now() - absl::Hours(1),
          .until = absl::Now() + absl::Hours(1)};
}

std::string WriteTestFile(const std::string& name, const std::string& text) {
  const std::string path = StrCat(testing::TempDir(), "/", name);
  const std::string next = StrCat(path, ".new");
  std::ofstream(next, std::ios::binary) << text;
  BATON_CHECK(std::rename(next.c_str(), path.c_str()) == 0);
  return path;
}

TlsFiles WriteTlsFiles(const std::string& name, const CertificateAuthority& trusted,
                       const CertificateAuthority& issuer, const CertificateAuthority::Subject& subject) {
  const IssuedCertificate pem = *issuer.Issue(subject);
  return {WriteTestFile("ca.pem", trusted.pem().certificate), WriteTestFile(name + ".pem", pem.certificate),
          WriteTestFile(name + ".key", pem.key)};
}

}  // namespace baton
