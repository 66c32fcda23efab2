#include "kv_transfer/landing.h"

#include "common/seeded_random_source.h"
#include "gtest/gtest.h"
#include "kv_transfer/transfer_plan.h"

namespace baton {
namespace {

const KvGeometry kGeometry{KvType::kF16,
                           16,
                           {{.layers = {0}, .kv_heads = 1, .head_dim = 8},
                            {.layers = {1}, .kv_heads = 1, .head_dim = 8, .window_tokens = 8}}};

v1::Landing Good() {
  SeededRandomSource random(1);
  return MakeLanding(MintTicket(random), "instance", "localhost:1", {"inproc", "grpc"}, kGeometry,
                     WantedAfter(kGeometry, 20));
}

TEST(Landing, WhatIsMadeIsRead) {
  const auto wanted = ReadLanding(Good(), kGeometry, 20);
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  EXPECT_EQ(*wanted, (std::vector<TokenRange>{{0, 20}, {13, 20}}));
}

TEST(Landing, WhatDoesNotFitIsRefused) {
  const auto code = [](auto change) {
    v1::Landing landing = Good();
    change(landing);
    return ReadLanding(landing, kGeometry, 20).status().code();
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code([](v1::Landing& l) { l.set_protocol_version(99); }), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code([](v1::Landing& l) { l.clear_protocol_version(); }), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code([](v1::Landing& l) { l.set_ticket("short"); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.clear_address(); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.set_block_tokens(0); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.set_block_tokens(12); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.set_block_tokens(1u << 31); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.mutable_wanted(0)->set_group(2); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.mutable_wanted(0)->clear_token_begin(); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.mutable_wanted(0)->set_token_end(21); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.mutable_wanted(0)->set_token_end(0); }), invalid);
  EXPECT_EQ(code([](v1::Landing& l) { l.mutable_wanted(1)->set_token_begin(12); }), invalid) << "rolled out";
  EXPECT_EQ(code([](v1::Landing& l) { *l.add_wanted() = l.wanted(0); }), invalid);
}

TEST(Landing, TheReceiversOrderOfTransportsDecides) {
  EXPECT_EQ(*ChooseTransport(Good(), {"grpc", "inproc"}), "inproc");
  EXPECT_EQ(*ChooseTransport(Good(), {"nccl", "grpc"}), "grpc");
  const auto none = ChooseTransport(Good(), {"nccl"});
  EXPECT_EQ(none.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(none.status().message().find("inproc, grpc"), absl::string_view::npos) << none.status();
}

TEST(Landing, TicketsDifferAndCompare) {
  SeededRandomSource random(1);
  const std::string a = MintTicket(random);
  const std::string b = MintTicket(random);
  EXPECT_EQ(a.size(), kTicketBytes);
  EXPECT_FALSE(EqualTickets(a, b));
  EXPECT_TRUE(EqualTickets(a, std::string(a)));
  EXPECT_FALSE(EqualTickets(a, a.substr(1)));
}

}  // namespace
}  // namespace baton
