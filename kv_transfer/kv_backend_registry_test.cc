#include "kv_transfer/kv_backend_registry.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(KvBackendRegistry, SelectsByNameInTheGivenOrder) {
  KvBackendRegistry registry;
  registry.Register({.name = "a"});
  registry.Register({.name = "b", .data_on_stream = true});
  const auto both = registry.Select({"b", "a"});
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ((*both)[0].name, "b");
  EXPECT_TRUE((*both)[0].data_on_stream);
  EXPECT_EQ((*both)[1].name, "a");
}

TEST(KvBackendRegistry, RefusesUnknownAndRepeatedNamesAndNone) {
  KvBackendRegistry registry;
  registry.Register({.name = "a"});
  registry.Register({.name = "b"});
  const auto unknown = registry.Select({"a", "rdma"});
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(unknown.status().message().find("\"rdma\" is none; there are a, b"), absl::string_view::npos)
      << unknown.status();
  EXPECT_FALSE(registry.Select({"a", "a"}).ok());
  EXPECT_FALSE(registry.Select({}).ok());
}

}  // namespace
}  // namespace baton
