#include "client/certs_command.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/connection_options.h"
#include "common/caller.h"
#include "common/certificate_authority.h"
#include "common/status_macros.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr mode_t kForOwner = 0600;
constexpr mode_t kForAll = 0644;
// Clocks of other machines may be behind.
constexpr absl::Duration kClockSkew = absl::Minutes(5);
constexpr int kAuthorityLives = 10;  // times as long as what it signs

struct RoleUse {
  CallerRole role;
  bool is_server;
  bool is_client;
};

// Who is dialled, and who dials others. Decode workers dial nobody.
constexpr RoleUse kRoles[] = {
    {CallerRole::kRouter, true, true},    {CallerRole::kPrefill, true, true},
    {CallerRole::kDecode, true, false},   {CallerRole::kClient, false, true},
    {CallerRole::kOperator, false, true},
};

// Whoever reads the file sees all of the old one or all of the new one.
absl::Status Write(const std::string& path, const std::string& text, mode_t mode) {
  const std::string next = StrCat(path, ".new");
  unlink(next.c_str());
  const int file = open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  bool good = file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  good = file >= 0 && close(file) == 0 && good;
  if (good && rename(next.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return absl::UnavailableError(StrCat("\"", path, "\" cannot be written: ", std::strerror(errno)));
}

absl::Status WritePair(const std::string& folder, std::string_view name, const IssuedCertificate& pem) {
  RETURN_IF_ERROR(Write(StrCat(folder, "/", name, ".key"), pem.key, kForOwner));
  return Write(StrCat(folder, "/", name, ".pem"), pem.certificate, kForAll);
}

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}

// The one of the folder, or a new one.
absl::StatusOr<CertificateAuthority> FindAuthority(const std::string& folder, absl::Time from,
                                                   absl::Time until) {
  const IssuedCertificate known = {Read(StrCat(folder, "/ca.pem")), Read(StrCat(folder, "/ca.key"))};
  if (!known.certificate.empty() || !known.key.empty()) return CertificateAuthority::Parse(known);
  ASSIGN_OR_RETURN(CertificateAuthority authority,
                   CertificateAuthority::Make("baton development", from, until));
  RETURN_IF_ERROR(WritePair(folder, "ca", authority.pem()));
  return authority;
}

}  // namespace

Program CertsProgram() {
  return CommandProgram("certs",
                        "Makes a certificate authority for development and a certificate for each role, in "
                        "one folder. Again: new certificates of\nthe same authority.\n\n"
                        "  baton certs certs\n"
                        "  baton up --tls certs\n"
                        "  baton certs certs --hosts router.example,10.0.0.5");
}

std::vector<Option> Describe(CertsOptions* o) {
  return {
      Option::Arguments("folder", &o->folder, "Where the files go; made when it is not there."),
      Option::List("hosts", &o->hosts, "names", "Names and addresses by which clients dial the router."),
      Option::Text("identity-prefix", &o->identity_prefix, "uri",
                   "What stands before the role in a certificate's URI: the services' tls-identity-prefix."),
      Option::Count("days", &o->days, {1, 3650}, "days",
                    "How long the certificates are good; the authority ten times as long.")};
}

absl::Status RunCerts(const CertsOptions& options, std::FILE* out) {
  if (options.folder.size() != 1) return absl::InvalidArgumentError("name one folder: baton certs DIR");
  const std::string& folder = options.folder[0];
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::UnavailableError(StrCat("\"", folder, "\" cannot be made: ", std::strerror(errno)));
  }
  const absl::Time from = absl::Now() - kClockSkew;
  const absl::Duration life = absl::Hours(24) * options.days;
  ASSIGN_OR_RETURN(const CertificateAuthority authority,
                   FindAuthority(folder, from, from + kAuthorityLives * life));
  for (const RoleUse& use : kRoles) {
    const std::string name(CallerRoleName(use.role));
    ASSIGN_OR_RETURN(const IssuedCertificate issued,
                     authority.Issue({.name = StrCat("baton ", name),
                                      .uri = StrCat(options.identity_prefix, name),
                                      .hosts = use.is_server ? options.hosts : std::vector<std::string>(),
                                      .is_server = use.is_server,
                                      .is_client = use.is_client,
                                      .from = from,
                                      .until = from + life}));
    RETURN_IF_ERROR(WritePair(folder, name, issued));
    std::fprintf(out, "%s/%s.pem  %s%s\n", folder.c_str(), name.c_str(), options.identity_prefix.c_str(),
                 name.c_str());
  }
  return absl::OkStatus();
}

}  // namespace baton
