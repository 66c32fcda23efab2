#ifndef BATON_COMMON_OPENSSL_PTR_H_
#define BATON_COMMON_OPENSSL_PTR_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>

namespace baton {

// Ends the life of a C library's object by the library's own function.
template <auto Free>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using CertificatePtr = std::unique_ptr<X509, Freed<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

}  // namespace baton

#endif  // BATON_COMMON_OPENSSL_PTR_H_
