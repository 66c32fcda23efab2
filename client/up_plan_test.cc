#include "client/up_plan.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using Cores = std::vector<int>;
using Words = std::vector<std::string>;

UpRequest Request(uint32_t prefill, uint32_t decode) {
  UpRequest request;
  request.prefill = prefill;
  request.decode = decode;
  request.model = "m.gguf";
  return request;
}

// Listens on 1, 2, 3 ..., serves metrics on 101, 102, 103 ...
std::vector<UpPorts> Ports(uint16_t count) {
  std::vector<UpPorts> ports;
  for (uint16_t i = 1; i <= count; ++i) ports.push_back({i, static_cast<uint16_t>(100 + i)});
  return ports;
}

TEST(UpPlan, OneOfEachOnTwoCores) {
  const auto plan = MakeUpPlan(Request(1, 1), Ports(3), {0, 1});
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[0].name, "prefill0");
  EXPECT_EQ(plan[0].binary, "baton_prefill");
  EXPECT_EQ(plan[0].arguments, (Words{"--listen", "127.0.0.1:1", "--metrics-listen", "127.0.0.1:101",
                                      "--model", "m.gguf", "--threads", "1"}));
  EXPECT_EQ(plan[0].cores, (Cores{0}));
  EXPECT_EQ(plan[1].name, "decode0");
  EXPECT_EQ(plan[1].cores, (Cores{1}));
  EXPECT_EQ(plan[2].name, "router");
  EXPECT_EQ(plan[2].arguments,
            (Words{"--listen", "127.0.0.1:3", "--metrics-listen", "127.0.0.1:103", "--model", "m.gguf",
                   "--prefill", "127.0.0.1:1", "--decode", "127.0.0.1:2"}));
  EXPECT_TRUE(plan[2].cores.empty());
}

TEST(UpPlan, TheRouterHasACoreOfItsOwnWhereThereAreMoreThanWorkers) {
  const auto plan = MakeUpPlan(Request(1, 1), Ports(3), {0, 1, 2, 3});
  EXPECT_EQ(plan[0].cores, (Cores{0, 2}));
  EXPECT_EQ(plan[0].arguments.back(), "2");
  EXPECT_EQ(plan[1].cores, (Cores{1}));
  EXPECT_EQ(plan[2].cores, (Cores{3}));
}

TEST(UpPlan, WorkersShareCoresWhereThereAreTooFew) {
  const auto plan = MakeUpPlan(Request(2, 3), Ports(6), {4, 7});
  EXPECT_EQ(plan[0].cores, (Cores{4}));
  EXPECT_EQ(plan[1].cores, (Cores{7}));
  EXPECT_EQ(plan[2].cores, (Cores{4}));
  EXPECT_EQ(plan[4].name, "decode2");
  EXPECT_EQ(plan[5].arguments[7], "127.0.0.1:1,127.0.0.1:2");
}

TEST(UpPlan, WithoutPrefillWorkersOrPinning) {
  UpRequest request = Request(0, 1);
  request.threads = 3;
  request.decode_flags = {"--kv-bytes", "1GiB"};
  request.router_flags = {"--x"};
  const auto plan = MakeUpPlan(request, Ports(2), {});
  EXPECT_EQ(plan[0].arguments, (Words{"--listen", "127.0.0.1:1", "--metrics-listen", "127.0.0.1:101",
                                      "--model", "m.gguf", "--threads", "3", "--kv-bytes", "1GiB"}));
  EXPECT_TRUE(plan[0].cores.empty());
  EXPECT_EQ(plan[1].arguments, (Words{"--listen", "127.0.0.1:2", "--metrics-listen", "127.0.0.1:102",
                                      "--model", "m.gguf", "--decode", "127.0.0.1:1", "--x"}));
}

TEST(UpPlan, EachRoleHasItsCertificate) {
  UpRequest request = Request(1, 1);
  request.tls = "certs";
  const auto plan = MakeUpPlan(request, Ports(3), {});
  ASSERT_EQ(plan.size(), 3u);
  const char* const roles[] = {"prefill", "decode", "router"};
  for (size_t i = 0; i < plan.size(); ++i) {
    const std::string file = std::string("certs/") + roles[i];
    const Words& all = plan[i].arguments;
    ASSERT_GE(all.size(), 12u);
    EXPECT_EQ(Words(all.begin() + 6, all.begin() + 12),
              (Words{"--tls-ca", "certs/ca.pem", "--tls-cert", file + ".pem", "--tls-key", file + ".key"}));
  }
}

}  // namespace
}  // namespace baton
