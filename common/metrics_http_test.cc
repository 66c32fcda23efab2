#include "common/metrics_http.h"

#include <string>

#include "common/raw_socket.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Fetch(uint16_t port, const std::string& path) {
  RawSocket socket = RawSocket::Connect(port);
  socket.Send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  return socket.ReadUntilClosed();
}

TEST(MetricsHttp, ServesTheMetricsOfTheProcess) {
  Metrics metrics("decode", "smol");
  metrics.Get<Metric::kGenerationTokens>().Increment(41);
  const absl::StatusOr<std::unique_ptr<MetricsHttp>> http = MetricsHttp::Start("localhost:0", metrics);
  ASSERT_TRUE(http.ok()) << http.status();
  const std::string answer = Fetch((*http)->address().port, "/metrics");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("baton_generation_tokens_total{model=\"smol\",role=\"decode\"} 41\n"));
  EXPECT_THAT(answer, HasSubstr("process_resident_memory_bytes "));
  EXPECT_THAT(Fetch((*http)->address().port, "/other"), StartsWith("HTTP/1.1 404"));
}

TEST(MetricsHttp, RefusesBadAddressesAndTakenPorts) {
  const Metrics metrics("decode", "smol");
  EXPECT_EQ(MetricsHttp::Start("nowhere", metrics).status().code(), absl::StatusCode::kInvalidArgument);
  const auto first = MetricsHttp::Start("127.0.0.1:0", metrics);
  ASSERT_TRUE(first.ok());
  const absl::Status taken = MetricsHttp::Start((*first)->address().ToString(), metrics).status();
  EXPECT_EQ(taken.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(taken.message()), HasSubstr((*first)->address().ToString()));
}

}  // namespace
}  // namespace baton
