#include "router/worker_list.h"

#include "gtest/gtest.h"

namespace baton {
namespace {

TEST(WorkerList, AddressesStandForThemselves) {
  std::vector<std::string> unresolved;
  EXPECT_EQ(ResolveWorkers({"127.0.0.1:1", "[::1]:2", "localhost:3"}, &unresolved),
            (std::set<std::string>{"127.0.0.1:1", "[::1]:2", "localhost:3"}));
  EXPECT_TRUE(unresolved.empty());
}

TEST(WorkerList, ANameThatDoesNotResolveIsNamed) {
  std::vector<std::string> unresolved;
  EXPECT_TRUE(ResolveWorkers({"decode.invalid:7620"}, &unresolved).empty());
  EXPECT_EQ(unresolved, (std::vector<std::string>{"decode.invalid:7620"}));
}

TEST(WorkerList, EntriesAreChecked) {
  EXPECT_TRUE(CheckWorkerList({"a:1", "[::1]:2"}).ok());
  EXPECT_EQ(CheckWorkerList({"a:1", "b"}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CheckWorkerList({"a:99999"}).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace baton
