#include "common/credentials.h"

#include <map>
#include <set>

#include "baton/v1/control.grpc.pb.h"
#include "baton/v1/decode.grpc.pb.h"
#include "baton/v1/inference.grpc.pb.h"
#include "baton/v1/kv_transfer.grpc.pb.h"
#include "baton/v1/prefill.grpc.pb.h"
#include "common/certificate_authority.h"
#include "common/grpc_channel.h"
#include "common/grpc_limits.h"
#include "common/grpc_server.h"
#include "common/raw_service.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "gtest/gtest.h"
#include "tests/support/test_certificates.h"

// Real servers and channels on loopback, certificates of an authority made here.
namespace baton {
namespace {

using grpc::StatusCode;

constexpr char kPrefix[] = "spiffe://baton.local/";
constexpr char kCheck[] = "/grpc.health.v1.Health/Check";
constexpr char kGenerate[] = "/baton.v1.Inference/Generate";
constexpr absl::Duration kAtMost = absl::Seconds(20);

class CredentialsTest : public testing::Test {
 protected:
  TlsFiles Files(const std::string& name, const CertificateAuthority::Subject& subject) {
    return WriteTlsFiles(name, authority_, authority_, subject);
  }
  TlsFiles Files(CallerRole role) {
    const std::string name(CallerRoleName(role));
    return Files(name, TestSubject(kPrefix + name));
  }

  std::shared_ptr<const Credentials> Make(const TlsFiles& tls, const std::string& token_file = "") {
    auto made = Credentials::Create(
        {.tls = tls, .token_file = token_file, .reload_interval = absl::Seconds(1)}, &clock_);
    EXPECT_TRUE(made.ok()) << made.status();
    return *std::move(made);
  }
  std::shared_ptr<const Credentials> Make(CallerRole role) { return Make(Files(role)); }

  // A server without any service but health: what passes the access table is UNIMPLEMENTED.
  const std::string& Serve(PortRole port, std::shared_ptr<const Credentials> credentials,
                           GrpcServerOptions options = {}) {
    options.port = port;
    options.credentials = std::move(credentials);
    servers_.push_back(std::make_unique<Server>());
    Server& server = *servers_.back();
    auto made = GrpcServer::Create(options, {}, &server.health, &server.drain, &clock_);
    EXPECT_TRUE(made.ok()) << made.status();
    server.server = *std::move(made);
    server.address = server.server->address().ToString();
    return server.address;
  }
  GrpcServer& server() { return *servers_.back()->server; }

  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                           const std::map<std::string, std::string>& metadata = {}) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kAtMost));
    for (const auto& [key, value] : metadata) context.AddMetadata(key, value);
    std::string response;
    return CallRaw(channel, method, &context, "", &response);
  }
  static StatusCode Code(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                         const std::map<std::string, std::string>& metadata = {}) {
    return Call(channel, method, metadata).error_code();
  }
  // Of a new connection, until it is this one: files are looked at once a second.
  static void Await(StatusCode code, const std::function<StatusCode()>& call) {
    const absl::Time end = absl::Now() + kAtMost;
    StatusCode last = call();
    while (last != code && absl::Now() < end) last = call();
    EXPECT_EQ(last, code);
  }
  std::shared_ptr<grpc::Channel> ClientChannel(const std::string& address, const TlsFiles& tls,
                                               const std::string& token_file = "") {
    const auto credentials = ClientCredentials(tls, token_file, address);
    EXPECT_TRUE(credentials.ok()) << credentials.status();
    return ChannelTo(address, *credentials);
  }

  struct Server {
    DrainState drain;
    HealthService health;
    std::unique_ptr<GrpcServer> server;
    std::string address;
  };

  SteadyClock clock_;
  CertificateAuthority authority_ = MakeTestAuthority();
  std::vector<std::unique_ptr<Server>> servers_;
};

// Every method of every service.
std::vector<std::string> AllMethods() {
  std::vector<std::string> methods = {"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"};
  for (const google::protobuf::FileDescriptor* file :
       {v1::GenerateRequest::descriptor()->file(), v1::GetLoadRequest::descriptor()->file(),
        v1::PrefillRequest::descriptor()->file(), v1::DecodeRequest::descriptor()->file(),
        v1::LandRequest::descriptor()->file(), grpc::health::v1::HealthCheckRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      for (int j = 0; j < file->service(i)->method_count(); ++j) {
        methods.push_back(
            StrCat("/", file->service(i)->full_name(), "/", file->service(i)->method(j)->name()));
      }
    }
  }
  return methods;
}

// Who may call what, port by port, written down a second time and the other way round: by caller.
std::set<std::string> MethodsOf(PortRole port, CallerRole caller) {
  const std::set<std::string> health = {kCheck, "/grpc.health.v1.Health/Watch"};
  std::set<std::string> may = health;
  const auto control = [&may](std::initializer_list<const char*> methods) {
    for (const char* method : methods) may.insert(StrCat("/baton.v1.Control/", absl::string_view(method)));
  };
  const bool is_operator = caller == CallerRole::kOperator;
  if (port == PortRole::kRouter) {
    if (caller != CallerRole::kClient && !is_operator) return may;
    for (const char* method : {"Generate", "GenerateStream", "Tokenize", "Detokenize"})
      may.insert(StrCat("/baton.v1.Inference/", absl::string_view(method)));
    control({"GetServerInfo", "ListModels", "GetModelInfo", "GetLoad", "ListWorkers"});
    may.insert("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
    if (is_operator) control({"Abort", "Drain"});
    return may;
  }
  if (caller == CallerRole::kRouter || is_operator)
    control({"GetServerInfo", "ListModels", "GetModelInfo", "GetLoad", "ListWorkers", "Abort"});
  if (is_operator) {
    control({"Drain"});
    may.insert("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  }
  if (caller == CallerRole::kRouter) {
    may.insert(port == PortRole::kPrefill ? "/baton.v1.PrefillWorker/Prefill"
                                          : "/baton.v1.DecodeWorker/Decode");
  }
  if (caller == CallerRole::kPrefill && port == PortRole::kDecode) may.insert("/baton.v1.KvTransfer/Land");
  return may;
}

constexpr CallerRole kCallers[] = {CallerRole::kClient, CallerRole::kOperator, CallerRole::kRouter,
                                   CallerRole::kPrefill, CallerRole::kDecode};

struct Port {
  PortRole port;
  CallerRole owner;
};
constexpr Port kPorts[] = {{PortRole::kRouter, CallerRole::kRouter},
                           {PortRole::kPrefill, CallerRole::kPrefill},
                           {PortRole::kDecode, CallerRole::kDecode}};

TEST_F(CredentialsTest, EveryMethodIsForItsCallersAlone) {
  const std::vector<std::string> methods = AllMethods();
  ASSERT_GE(methods.size(), 17u);
  for (const Port& port : kPorts) {
    const std::string address = Serve(port.port, Make(port.owner), {.reflection = false});
    for (const CallerRole caller : kCallers) {
      const auto channel = ChannelTo(address, Make(caller)->ForPeer(port.owner));
      const std::set<std::string> may = MethodsOf(port.port, caller);
      for (const std::string& method : methods) {
        if (method == "/grpc.health.v1.Health/Watch") continue;  // a stream that is served: below
        const StatusCode code = Code(channel, method);
        if (method == kCheck) {
          EXPECT_EQ(code, StatusCode::OK);
        } else {
          EXPECT_EQ(code, may.contains(method) ? StatusCode::UNIMPLEMENTED : StatusCode::PERMISSION_DENIED)
              << CallerRoleName(caller) << " calls " << method << " of " << CallerRoleName(port.owner);
        }
      }
      EXPECT_EQ(Code(channel, "/baton.v1.Inference/New"),
                may.contains(kGenerate) ? StatusCode::UNIMPLEMENTED : StatusCode::PERMISSION_DENIED);
      EXPECT_EQ(Code(channel, "/other.Service/Method"), StatusCode::PERMISSION_DENIED);
    }
  }
}

TEST_F(CredentialsTest, WithoutIdentityOnlyHealthIsAnswered) {
  Metrics metrics("router", "model");
  const std::string address = Serve(PortRole::kRouter, Make(CallerRole::kRouter), {.metrics = &metrics});
  const auto nobody = ClientChannel(address, {.ca = Files(CallerRole::kClient).ca});
  const grpc::Status refused = Call(nobody, kGenerate);
  EXPECT_EQ(refused.error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(refused.error_message(), "a certificate or a bearer token of this deployment is needed");
  EXPECT_EQ(Code(nobody, "/grpc.health.v1.Health/Watch"), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Code(nobody, kCheck), StatusCode::OK);
  EXPECT_EQ(metrics.Get<Metric::kRequests>("UNAUTHENTICATED", "").Value(), 2);
  // Certificates of the right authority that name no role here.
  for (const char* uri :
       {"spiffe://elsewhere/client", "spiffe://baton.local/clients", "https://baton.local/client"}) {
    const auto stranger = ClientChannel(address, Files("stranger", TestSubject(uri)));
    EXPECT_EQ(Code(stranger, kGenerate), StatusCode::UNAUTHENTICATED) << uri;
  }
  EXPECT_EQ(
      Code(ClientChannel(address, Files("alice", TestSubject(StrCat(kPrefix, "client/alice")))), kGenerate),
      StatusCode::UNIMPLEMENTED);
}

TEST_F(CredentialsTest, ConnectionsThatFailTheHandshake) {
  const std::string address = Serve(PortRole::kDecode, Make(CallerRole::kDecode));
  const auto router = Make(CallerRole::kRouter);
  constexpr char kLoad[] = "/baton.v1.Control/GetLoad";
  ASSERT_EQ(Code(ChannelTo(address, router->ForPeer(CallerRole::kDecode)), kLoad), StatusCode::UNIMPLEMENTED);

  // No TLS, or no certificate, at a worker's port.
  EXPECT_EQ(Code(CreateChannel(address), kCheck), StatusCode::UNAVAILABLE);
  EXPECT_EQ(Code(ClientChannel(address, {.ca = Files(CallerRole::kClient).ca}), kCheck),
            StatusCode::UNAVAILABLE);
  // The server is another role, or another worker of the role, than was expected.
  EXPECT_EQ(Code(ChannelTo(address, router->ForPeer(CallerRole::kPrefill)), kLoad), StatusCode::UNAVAILABLE);
  EXPECT_EQ(
      Code(ChannelTo(address, router->ForPeer(CallerRole::kDecode, StrCat(kPrefix, "decode/7"))), kLoad),
      StatusCode::UNAVAILABLE);
  EXPECT_EQ(Code(ChannelTo(address, router->ForPeer(CallerRole::kDecode, StrCat(kPrefix, "decode"))), kLoad),
            StatusCode::UNIMPLEMENTED);

  // Certificates that the server does not accept. They fail this process's own check too, so that the
  // library is given them directly.
  const auto connect_with = [&](const CertificateAuthority& issuer, CertificateAuthority::Subject subject) {
    const IssuedCertificate pem = *issuer.Issue(subject);
    grpc::SslCredentialsOptions options = {authority_.pem().certificate, pem.key, pem.certificate};
    return Code(ChannelTo(address, grpc::SslCredentials(options)), kLoad);
  };
  CertificateAuthority::Subject subject = TestSubject(StrCat(kPrefix, "router"));
  EXPECT_EQ(connect_with(authority_, subject), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(connect_with(MakeTestAuthority(), subject), StatusCode::UNAVAILABLE);
  subject.is_client = false;
  EXPECT_EQ(connect_with(authority_, subject), StatusCode::UNAVAILABLE);
  subject.is_client = true;
  subject.until = absl::Now() - absl::Minutes(1);
  EXPECT_EQ(connect_with(authority_, subject), StatusCode::UNAVAILABLE);
}

TEST_F(CredentialsTest, AClientChecksTheRoutersName) {
  CertificateAuthority::Subject elsewhere = TestSubject(StrCat(kPrefix, "router"));
  elsewhere.hosts = {"router.example"};
  const std::string address = Serve(PortRole::kRouter, Make(Files("elsewhere", elsewhere)));
  EXPECT_EQ(Code(ClientChannel(address, Files(CallerRole::kClient)), kGenerate), StatusCode::UNAVAILABLE);
}

TEST_F(CredentialsTest, ReplacedCertificatesAreTakenUpWithoutARestart) {
  const TlsFiles files = Files("server", TestSubject(StrCat(kPrefix, "decode/old")));
  const auto credentials = Make(files);
  const std::string address = Serve(PortRole::kDecode, credentials);
  const auto router = Make(CallerRole::kRouter);
  const auto code_of = [&](const char* identity) {
    return Code(ChannelTo(address,
                          router->ForPeer(CallerRole::kDecode, StrCat(kPrefix, absl::string_view(identity)))),
                "/baton.v1.Control/GetLoad");
  };
  EXPECT_EQ(code_of("decode/old"), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(code_of("decode/new"), StatusCode::UNAVAILABLE);
  Files("server", TestSubject(StrCat(kPrefix, "decode/new")));
  Await(StatusCode::UNIMPLEMENTED, [&] { return code_of("decode/new"); });
  EXPECT_EQ(code_of("decode/old"), StatusCode::UNAVAILABLE);
}

TEST_F(CredentialsTest, TokensOverTls) {
  const std::string tokens =
      WriteTestFile("tokens",
                    "# comment\n\nalice secret-a\n"
                    "bob sha256:f52fbd32b2b3b86ff88ef6c490628285f482af15ddcb29541f94bcf526a3f6c7\n"
                    "ops secret-o operator # may drain\n");
  const std::string address = Serve(PortRole::kRouter, Make(Files(CallerRole::kRouter), tokens));
  const TlsFiles ca_only = {.ca = Files(CallerRole::kClient).ca};
  const auto nobody = ClientChannel(address, ca_only);
  EXPECT_EQ(Code(nobody, kGenerate), StatusCode::UNAUTHENTICATED);
  const auto alice = ClientChannel(address, ca_only, WriteTestFile("alice.token", "secret-a\n"));
  EXPECT_EQ(Code(alice, kGenerate), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Code(alice, "/baton.v1.Control/Drain"), StatusCode::PERMISSION_DENIED);
  const auto operator_channel = ClientChannel(address, ca_only, WriteTestFile("ops.token", "secret-o"));
  EXPECT_EQ(Code(operator_channel, "/baton.v1.Control/Drain"), StatusCode::UNIMPLEMENTED);
  for (const char* value : {"Bearer secret-b", "Bearer ", "Bearer secret-a ", "bearer secret-a",
                            "Basic secret-a", "secret-a", "Bearer alice"}) {
    const grpc::Status status = Call(nobody, kGenerate, {{"authorization", value}});
    EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED) << value;
    EXPECT_EQ(status.error_message(), "authorization: not a bearer token that is known here");
  }
  EXPECT_EQ(Code(nobody, kGenerate, {{"authorization", "Bearer secret-a"}}), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Code(nobody, kGenerate, {{"authorization", "Bearer hunter2"}}), StatusCode::UNIMPLEMENTED);
  // A certificate does as well, and a wrong token spoils it.
  const auto certified = ClientChannel(address, Files(CallerRole::kClient));
  EXPECT_EQ(Code(certified, kGenerate), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(Code(certified, kGenerate, {{"authorization", "Bearer x"}}), StatusCode::UNAUTHENTICATED);
}

TEST_F(CredentialsTest, TokensOnLoopbackAndTheirReload) {
  const std::string tokens = WriteTestFile("tokens", "alice one\n");
  const std::string address = Serve(PortRole::kRouter, Make(TlsFiles(), tokens));
  const auto channel = CreateChannel(address);
  const auto code_of = [&](const char* token) {
    return Code(channel, kGenerate, {{"authorization", StrCat("Bearer ", absl::string_view(token))}});
  };
  EXPECT_EQ(Code(channel, kGenerate), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Code(channel, kCheck), StatusCode::OK);
  EXPECT_EQ(code_of("one"), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(code_of("two"), StatusCode::UNAUTHENTICATED);
  WriteTestFile("tokens", "alice two\n");
  Await(StatusCode::UNIMPLEMENTED, [&] { return code_of("two"); });
  EXPECT_EQ(code_of("one"), StatusCode::UNAUTHENTICATED);
  // The client's own way to send it.
  EXPECT_EQ(Code(ClientChannel(address, {}, WriteTestFile("client.token", "two")), kGenerate),
            StatusCode::UNIMPLEMENTED);
  const absl::Status abroad =
      ClientCredentials({}, WriteTestFile("client.token", "two"), "router.example:1").status();
  EXPECT_EQ(abroad.message(), "token-file: the token would cross the network in plaintext; give --tls-ca");
}

TEST(TokenTable, LinesAndTheirFaults) {
  // printf 'hunter2' | sha256sum
  const auto table = TokenTable::Parse(
      "alice plain\r\n"
      "bob  sha256:F52FBD32B2B3B86FF88EF6C490628285F482AF15DDCB29541F94BCF526A3F6C7 operator");
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ(table->size(), 2u);
  EXPECT_EQ(table->Find("plain")->name, "alice");
  EXPECT_EQ(table->Find("plain")->role, CallerRole::kClient);
  EXPECT_EQ(table->Find("hunter2")->name, "bob");
  EXPECT_EQ(table->Find("hunter2")->role, CallerRole::kOperator);
  EXPECT_FALSE(table->Find("").has_value());
  EXPECT_FALSE(
      table->Find("sha256:F52FBD32B2B3B86FF88EF6C490628285F482AF15DDCB29541F94BCF526A3F6C7").has_value());
  const auto error = [](const char* text) { return std::string(TokenTable::Parse(text).status().message()); };
  EXPECT_EQ(error(""), "token-file: holds no token");
  EXPECT_EQ(error("\n#x\n"), "token-file: holds no token");
  EXPECT_EQ(error("a b\nsecret\n"), "token-file: line 2 has 1 words, must have NAME and TOKEN");
  EXPECT_EQ(error("a b c d"), "token-file: line 1 has 4 words, must have NAME and TOKEN");
  EXPECT_EQ(error("a b router"), "token-file: line 1 its third word is neither client nor operator");
  EXPECT_EQ(error("a sha256:12"), "token-file: line 1 its hash has 2 digits, must have 64");
  EXPECT_EQ(error(StrCat("a sha256:", std::string(64, 'g')).c_str()),
            "token-file: line 1 its hash is not hexadecimal");
}

TEST_F(CredentialsTest, FilesThatAreWrongAreNamed) {
  const TlsFiles good = Files(CallerRole::kDecode);
  const auto error = [this](const TlsFiles& files) {
    return std::string(Credentials::Create({.tls = files}, &clock_).status().message());
  };
  EXPECT_EQ(error(good), "");
  EXPECT_EQ(error({.ca = good.ca}), "tls-cert is needed with tls-ca");
  EXPECT_EQ(error({good.ca, good.cert, ""}), "tls-key is needed with the other TLS files");
  EXPECT_EQ(error({"", good.cert, good.key}), "tls-ca is needed with the other TLS files");
  EXPECT_EQ(error({good.ca, "/nowhere", good.key}), "tls-cert: \"/nowhere\" cannot be read");
  EXPECT_EQ(error({good.key, good.cert, good.key}),
            StrCat("tls-ca: \"", good.key, "\" holds no certificate in PEM"));
  EXPECT_EQ(error({good.ca, good.cert, good.cert}),
            StrCat("tls-key: \"", good.cert, "\" holds no unencrypted private key in PEM"));
  EXPECT_EQ(error({good.ca, good.cert, Files(CallerRole::kPrefill).key}),
            StrCat("tls-key: \"", testing::TempDir(), "/prefill.key\" is not the key of tls-cert"));
  EXPECT_EQ(error(WriteTlsFiles("foreign", authority_, MakeTestAuthority(),
                                TestSubject(StrCat(kPrefix, "decode")))),
            StrCat("tls-cert: \"", testing::TempDir(),
                   "/foreign.pem\" is not accepted by tls-ca: unable to get local issuer certificate"));
  CertificateAuthority::Subject expired = TestSubject(StrCat(kPrefix, "decode"));
  expired.until = absl::Now() - absl::Minutes(1);
  EXPECT_EQ(error(Files("expired", expired)),
            StrCat("tls-cert: \"", testing::TempDir(),
                   "/expired.pem\" is not accepted by tls-ca: certificate has expired"));
  EXPECT_EQ(error(Files("nobody", TestSubject("spiffe://elsewhere/decode"))),
            "tls-cert: its one URI must be \"spiffe://baton.local/\" and a role; it is "
            "\"spiffe://elsewhere/decode\"");
}

TEST_F(CredentialsTest, PlaintextAbroadNeedsTheOperatorsWord) {
  const HostPort loopback = *HostPort::Parse("localhost:1");
  const HostPort abroad = *HostPort::Parse("0.0.0.0:1");
  const auto of = [](std::shared_ptr<const Credentials> self, const HostPort& listen, bool allow) {
    return Credentials::ForServer(std::move(self), listen, PortRole::kRouter, allow, nullptr).status();
  };
  EXPECT_TRUE(of(nullptr, loopback, false).ok());
  EXPECT_TRUE(of(nullptr, abroad, true).ok());
  EXPECT_TRUE(of(Make(CallerRole::kRouter), abroad, false).ok());
  const absl::Status refused = of(nullptr, abroad, false);
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused.message(),
            "listen: \"0.0.0.0:1\" can be reached from other machines and the connection is not encrypted; "
            "give --tls-ca, --tls-cert and --tls-key, listen on loopback, or give --allow-plaintext");
  EXPECT_EQ(of(Make(TlsFiles(), WriteTestFile("tokens", "a b")), abroad, true).message(),
            "listen: \"0.0.0.0:1\" can be reached from other machines, and tokens would cross the network in "
            "plaintext; give --tls-ca, --tls-cert and --tls-key");
}

TEST_F(CredentialsTest, TheHealthPortServesHealthAlone) {
  Serve(PortRole::kDecode, Make(CallerRole::kDecode), {.health_listen = "127.0.0.1:0"});
  const auto probe = CreateChannel(server().health_address());
  EXPECT_EQ(Code(probe, kCheck), StatusCode::OK);
  for (const std::string& method : AllMethods()) {
    if (method.find("grpc.health") != std::string::npos) continue;
    EXPECT_EQ(Code(probe, method), StatusCode::UNIMPLEMENTED) << method;
  }
}

TEST_F(CredentialsTest, HeadersAreBounded) {
  const std::string address = Serve(PortRole::kRouter, nullptr);
  const auto channel = CreateChannel(address);
  EXPECT_EQ(Code(channel, kCheck, {{"x-tenant", std::string(kMaxMetadataBytes / 2, 'x')}}), StatusCode::OK);
  EXPECT_EQ(Code(channel, kCheck, {{"x-tenant", std::string(kMaxMetadataBytes, 'x')}}),
            StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace baton
