#include "common/certificate_authority.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <utility>

#include "absl/strings/str_join.h"
#include "common/openssl_ptr.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Number = std::unique_ptr<BIGNUM, Freed<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

constexpr int kSerialBits = 127;  // positive in 16 bytes

absl::Status Failed(std::string_view what) {
  return absl::InternalError(StrCat("the cryptographic library cannot ", what));
}

std::string Content(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<size_t>(size));
}

absl::StatusOr<IssuedCertificate> Print(X509* certificate, EVP_PKEY* key) {
  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return Failed("print a certificate");
  }
  return IssuedCertificate{Content(certificate_text.get()), Content(key_text.get())};
}

bool IsAddress(const std::string& host) {
  in6_addr ignored;
  return inet_pton(AF_INET, host.c_str(), &ignored) == 1 || inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

// "URI:...,DNS:...,IP:..."
absl::StatusOr<std::string> AlternativeNames(const CertificateAuthority::Subject& subject) {
  std::vector<std::string> names;
  if (!subject.uri.empty()) names.push_back(StrCat("URI:", subject.uri));
  for (const std::string& host : subject.hosts)
    names.push_back(StrCat(IsAddress(host) ? "IP:" : "DNS:", host));
  for (const std::string& name : names) {
    // They are joined by commas for the library to parse.
    if (name.find_first_of(", \t\r\n") == std::string::npos) continue;
    return absl::InvalidArgumentError(StrCat("\"", name, "\" is no name for a certificate"));
  }
  return absl::StrJoin(names, ",");
}

absl::Status AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  if (extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("a certificate cannot have the extension ", value));
}

// Everything but extensions and signature.
absl::StatusOr<CertificatePtr> Begin(const std::string& name, X509_NAME* issuer, EVP_PKEY* key,
                                     absl::Time from, absl::Time until) {
  CertificatePtr certificate(X509_new());
  const Number serial(BN_new());
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  const bool done =
      X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
      BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate.get())) != nullptr &&
      ASN1_TIME_set(X509_getm_notBefore(certificate.get()), absl::ToTimeT(from)) != nullptr &&
      ASN1_TIME_set(X509_getm_notAfter(certificate.get()), absl::ToTimeT(until)) != nullptr &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0) == 1 &&
      X509_set_issuer_name(certificate.get(), issuer == nullptr ? subject : issuer) == 1 &&
      X509_set_pubkey(certificate.get(), key) == 1;
  if (!done) return Failed("make a certificate");
  return certificate;
}

}  // namespace

struct CertificateAuthority::Parts {
  CertificatePtr certificate;
  KeyPtr key;
};

CertificateAuthority::CertificateAuthority(std::unique_ptr<Parts> parts, IssuedCertificate pem)
    : parts_(std::move(parts)), pem_(std::move(pem)) {}
CertificateAuthority::~CertificateAuthority() = default;
CertificateAuthority::CertificateAuthority(CertificateAuthority&&) noexcept = default;

absl::StatusOr<CertificateAuthority> CertificateAuthority::Make(const std::string& name, absl::Time from,
                                                                absl::Time until) {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  ASSIGN_OR_RETURN(CertificatePtr certificate, Begin(name, nullptr, key.get(), from, until));
  X509* const own = certificate.get();
  RETURN_IF_ERROR(AddExtension(own, own, NID_basic_constraints, "critical,CA:TRUE,pathlen:0"));
  RETURN_IF_ERROR(AddExtension(own, own, NID_key_usage, "critical,keyCertSign,cRLSign"));
  RETURN_IF_ERROR(AddExtension(own, own, NID_subject_key_identifier, "hash"));
  if (X509_sign(own, key.get(), EVP_sha256()) == 0) return Failed("sign a certificate");
  ASSIGN_OR_RETURN(IssuedCertificate pem, Print(own, key.get()));
  return CertificateAuthority(std::make_unique<Parts>(Parts{std::move(certificate), std::move(key)}),
                              std::move(pem));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Parse(const IssuedCertificate& pem) {
  const Bio certificate_text(
      BIO_new_mem_buf(pem.certificate.data(), static_cast<int>(pem.certificate.size())));
  const Bio key_text(BIO_new_mem_buf(pem.key.data(), static_cast<int>(pem.key.size())));
  CertificatePtr certificate(PEM_read_bio_X509(certificate_text.get(), nullptr, nullptr, nullptr));
  KeyPtr key(PEM_read_bio_PrivateKey(key_text.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr || key == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return absl::InvalidArgumentError("the authority's certificate and key are not a pair in PEM");
  }
  return CertificateAuthority(std::make_unique<Parts>(Parts{std::move(certificate), std::move(key)}), pem);
}

absl::StatusOr<IssuedCertificate> CertificateAuthority::Issue(const Subject& subject) const {
  const KeyPtr key(EVP_EC_gen("P-256"));
  if (key == nullptr) return Failed("make a key");
  X509* const issuer = parts_->certificate.get();
  ASSIGN_OR_RETURN(const CertificatePtr certificate, Begin(subject.name, X509_get_subject_name(issuer),
                                                           key.get(), subject.from, subject.until));
  std::vector<std::string> uses;
  if (subject.is_server) uses.emplace_back("serverAuth");
  if (subject.is_client) uses.emplace_back("clientAuth");
  ASSIGN_OR_RETURN(const std::string names, AlternativeNames(subject));
  X509* const own = certificate.get();
  RETURN_IF_ERROR(AddExtension(own, issuer, NID_basic_constraints, "critical,CA:FALSE"));
  RETURN_IF_ERROR(AddExtension(own, issuer, NID_key_usage, "critical,digitalSignature"));
  RETURN_IF_ERROR(AddExtension(own, issuer, NID_ext_key_usage, absl::StrJoin(uses, ",")));
  RETURN_IF_ERROR(AddExtension(own, issuer, NID_subject_alt_name, names));
  RETURN_IF_ERROR(AddExtension(own, issuer, NID_subject_key_identifier, "hash"));
  RETURN_IF_ERROR(AddExtension(own, issuer, NID_authority_key_identifier, "keyid"));
  if (X509_sign(own, parts_->key.get(), EVP_sha256()) == 0) return Failed("sign a certificate");
  return Print(own, key.get());
}

}  // namespace baton
