#include "common/tls_files.h"

#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

#include "common/openssl_ptr.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

using File = std::unique_ptr<std::FILE, Freed<std::fclose>>;
using Store = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;
using Chain = std::vector<CertificatePtr>;

absl::Status Wrong(std::string_view option, const std::string& path, std::string_view what) {
  return absl::InvalidArgumentError(StrCat(option, ": \"", path, "\" ", what));
}

absl::StatusOr<File> Open(std::string_view option, const std::string& path) {
  if (path.empty()) return absl::InvalidArgumentError(StrCat(option, " is needed with the other TLS files"));
  File file(std::fopen(path.c_str(), "re"));
  if (file == nullptr) return Wrong(option, path, "cannot be read");
  return file;
}

absl::StatusOr<Chain> ReadCertificates(std::string_view option, const std::string& path) {
  ASSIGN_OR_RETURN(const File file, Open(option, path));
  Chain chain;
  while (X509* const next = PEM_read_X509(file.get(), nullptr, nullptr, nullptr)) chain.emplace_back(next);
  if (chain.empty()) return Wrong(option, path, "holds no certificate in PEM");
  return chain;
}

// Never asks for a pass phrase: an encrypted key is refused.
int NoPassPhrase(char*, int, int, void*) { return -1; }

absl::StatusOr<KeyPtr> ReadKey(const std::string& path) {
  ASSIGN_OR_RETURN(const File file, Open("tls-key", path));
  KeyPtr key(PEM_read_PrivateKey(file.get(), nullptr, NoPassPhrase, nullptr));
  if (key == nullptr) return Wrong("tls-key", path, "holds no unencrypted private key in PEM");
  return key;
}

// The first certificate of `chain` by the way of the others.
absl::Status Verify(const Chain& authorities, const Chain& chain, const std::string& path) {
  const Store store(X509_STORE_new());
  for (const CertificatePtr& authority : authorities) X509_STORE_add_cert(store.get(), authority.get());
  STACK_OF(X509)* const between = sk_X509_new_null();
  for (size_t i = 1; i < chain.size(); ++i) sk_X509_push(between, chain[i].get());
  const StoreContext context(X509_STORE_CTX_new());
  const bool begun = X509_STORE_CTX_init(context.get(), store.get(), chain[0].get(), between) == 1;
  const bool good = begun && X509_verify_cert(context.get()) == 1;
  sk_X509_free(between);
  if (good) return absl::OkStatus();
  const int why = X509_STORE_CTX_get_error(context.get());
  return Wrong("tls-cert", path,
               StrCat("is not accepted by tls-ca: ", absl::string_view(X509_verify_cert_error_string(why))));
}

std::string IdentityOf(const X509* certificate) {
  const Names names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> uris;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    uris.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)), ASN1_STRING_length(uri));
  }
  return uris.size() == 1 ? uris[0] : "";
}

absl::Time ExpiryOf(const X509* certificate) {
  std::tm expiry = {};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &expiry) != 1) return absl::InfinitePast();
  return absl::FromTM(expiry, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<CertificateFacts> CheckTlsFiles(const TlsFiles& files) {
  ASSIGN_OR_RETURN(const Chain authorities, ReadCertificates("tls-ca", files.ca));
  if (files.cert.empty() && files.key.empty()) return CertificateFacts();
  ASSIGN_OR_RETURN(const Chain chain, ReadCertificates("tls-cert", files.cert));
  ASSIGN_OR_RETURN(const KeyPtr key, ReadKey(files.key));
  if (X509_check_private_key(chain[0].get(), key.get()) != 1) {
    return Wrong("tls-key", files.key, "is not the key of tls-cert");
  }
  RETURN_IF_ERROR(Verify(authorities, chain, files.cert));
  return CertificateFacts{IdentityOf(chain[0].get()), ExpiryOf(chain[0].get())};
}

}  // namespace baton
