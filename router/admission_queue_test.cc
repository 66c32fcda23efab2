#include "router/admission_queue.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/error_details.h"
#include "common/seeded_random_source.h"
#include "gtest/gtest.h"

namespace baton {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

class AdmissionQueueTest : public ::testing::Test {
 protected:
  AdmissionQueue& queue() {
    if (!queue_) queue_.emplace(options);
    return *queue_;
  }
  QueuedCall Make(std::string tenant, uint64_t cost, int32_t priority = 0) {
    return {++last_id_, std::move(tenant), priority, cost, now};
  }
  CallId Push(std::string tenant, uint64_t cost, int32_t priority = 0) {
    const QueuedCall call = Make(std::move(tenant), cost, priority);
    queue().Push(call, now);
    return call.id;
  }
  std::vector<CallId> Order() {
    std::vector<CallId> order;
    AdmissionQueue::Round round(&queue());
    while (const std::optional<CallId> id = round.Next()) order.push_back(*id);
    return order;
  }
  // Takes every call in its turn.
  std::vector<CallId> TakeAll() {
    std::vector<CallId> taken;
    AdmissionQueue::Round round(&queue());
    while (const std::optional<CallId> id = round.Next()) {
      queue().Take(*id, now);
      EXPECT_EQ(queue().CheckInvariants(), absl::OkStatus());
      taken.push_back(*id);
    }
    return taken;
  }

  absl::Time now = kStart;
  AdmissionOptions options;

 private:
  std::optional<AdmissionQueue> queue_;
  CallId last_id_ = 0;
};

TEST_F(AdmissionQueueTest, EqualCallsGoInTheOrderOfArrival) {
  const CallId a = Push("", 10), b = Push("", 10);
  now += absl::Milliseconds(1);
  const CallId c = Push("", 10);
  EXPECT_EQ(Order(), (std::vector<CallId>{a, b, c}));
  EXPECT_EQ(queue().waiting_tokens(), 30);
  queue().Erase(b);
  EXPECT_EQ(TakeAll(), (std::vector<CallId>{a, c}));
  EXPECT_EQ(queue().size(), 0);
}

TEST_F(AdmissionQueueTest, TenantsTakeTurnsByTokensWhateverTheySend) {
  std::vector<CallId> greedy;
  for (int i = 0; i < 4; ++i) greedy.push_back(Push("greedy", 100));
  const CallId modest = Push("modest", 100), small = Push("small", 50);
  EXPECT_EQ(TakeAll(), (std::vector<CallId>{small, greedy[0], modest, greedy[1], greedy[2], greedy[3]}));
}

TEST_F(AdmissionQueueTest, AShortCallOvertakesALongOneByABoundedTime) {
  const CallId longest = Push("", 4000);  // has the patience for 8 s
  now += absl::Seconds(7);
  const CallId soon = Push("", 100);
  now += absl::Seconds(2);
  const CallId later = Push("", 100);
  EXPECT_EQ(Order(), (std::vector<CallId>{soon, longest, later}));
}

TEST_F(AdmissionQueueTest, AHighPriorityOvertakesALowOneByABoundedTime) {
  const CallId low = Push("", 100, -1);
  now += absl::Seconds(1);
  const CallId normal = Push("", 100);
  const CallId high = Push("", 100, 2);
  now += absl::Seconds(6);
  const CallId late = Push("", 100, 1);
  EXPECT_EQ(Order(), (std::vector<CallId>{high, normal, low, late}));
}

TEST_F(AdmissionQueueTest, CallsThatHadAPairGoFirst) {
  Push("", 1);
  queue().PushAgain(11, /*has_tokens=*/false, kStart);
  queue().PushAgain(12, /*has_tokens=*/true, kStart + absl::Seconds(2));
  queue().PushAgain(13, /*has_tokens=*/true, kStart + absl::Seconds(1));
  EXPECT_EQ(Order(), (std::vector<CallId>{13, 12, 11, 1}));
  queue().Take(12, now);
  EXPECT_EQ(Order(), (std::vector<CallId>{13, 11, 1}));
}

TEST_F(AdmissionQueueTest, WhoIsPassedOverKeepsItsTurnAndItsTenantIsNotCharged) {
  const CallId a = Push("a", 100), a2 = Push("a", 100), b = Push("b", 100);
  AdmissionQueue::Round round(&queue());
  EXPECT_EQ(round.Next(), a);
  EXPECT_EQ(round.Next(), a2);
  queue().Take(a2, now);
  EXPECT_EQ(round.Next(), b);
  EXPECT_EQ(round.Next(), std::nullopt);
  EXPECT_EQ(Order(), (std::vector<CallId>{b, a}));
}

TEST_F(AdmissionQueueTest, IsBoundedAsAWholeAndPerTenant) {
  options.max_queued = 4;
  Push("a", 1);
  Push("a", 1);
  const absl::Status share = queue().Admit(Make("a", 1), absl::Minutes(1));
  EXPECT_EQ(ErrorReason(share), "SHARE_FULL");
  EXPECT_TRUE(queue().Admit(Make("b", 1), absl::Minutes(1)).ok());
  Push("b", 1);
  Push("c", 1);
  const absl::Status full = queue().Admit(Make("d", 1), absl::Minutes(1));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ErrorReason(full), "QUEUE_FULL");
  EXPECT_EQ(GetRetryDelay(full), absl::Seconds(1));
}

TEST_F(AdmissionQueueTest, TheRateOfLateSaysHowLongTheWaitIs) {
  for (int i = 0; i < 30; ++i) Push("a", 100);
  EXPECT_EQ(queue().EstimateWait(Make("a", 100)), std::nullopt);
  for (int i = 0; i < 20; ++i) {
    now += absl::Milliseconds(100);
    queue().Take(Order().front(), now);
  }
  // A thousand tokens a second: ten calls of a hundred tokens are ahead, for one with as much patience.
  EXPECT_NEAR(absl::ToDoubleSeconds(*queue().EstimateWait(Make("a", 100))), 1, 0.01);
  EXPECT_EQ(*queue().EstimateWait(Make("b", 100)), absl::ZeroDuration());
  Push("b", 100);
  EXPECT_NEAR(absl::ToDoubleSeconds(*queue().EstimateWait(Make("a", 100))), 2,
              0.02);  // half of the rate is its own
  const absl::Status refused = queue().Admit(Make("a", 100), absl::Milliseconds(500));
  EXPECT_EQ(ErrorReason(refused), "WAIT_TOO_LONG");
  EXPECT_NEAR(absl::ToDoubleSeconds(*GetRetryDelay(refused)), 2, 0.02);
  EXPECT_TRUE(queue().Admit(Make("a", 100), absl::Seconds(3)).ok());
}

TEST_F(AdmissionQueueTest, TenantsBeyondTheLimitShareOnePlace) {
  options.max_tenants = 2;
  const CallId a = Push("a", 100), b = Push("b", 100);
  const CallId c = Push("c", 100), d = Push("d", 100);
  EXPECT_EQ(TakeAll(), (std::vector<CallId>{a, b, c, d}));
  EXPECT_EQ(queue().CheckInvariants(), absl::OkStatus());
}

TEST(ParseTenantWeights, ReadsNamesAndRefusesWhatIsNoWeight) {
  const std::map<std::string, double> expected = {{"a", 2}, {"b=c", 0.5}, {"", 3}};
  EXPECT_EQ(*ParseTenantWeights({"a=2", "b=c=0.5", "=3"}), expected);
  for (const char* bad : {"a", "a=", "a=0", "a=-1", "a=nan", "a=1001", "a=1x"}) {
    EXPECT_FALSE(ParseTenantWeights({bad}).ok()) << bad;
  }
}

// Random loads, served one call at a time at a rate below what is sent.
class RandomLoad {
 public:
  explicit RandomLoad(uint64_t seed) : random_(seed) {
    options_.max_queued = 100000;
    options_.weights = {{"t1", 2}, {"t2", 0.5}};
  }

  void Run() {
    AdmissionQueue queue(options_);
    for (int step = 0; step < 3000; ++step) {
      now_ += absl::Milliseconds(random_.Next() % 20);
      if (random_.Next() % 3 != 0) Send(queue);
      if (random_.Next() % 2 == 0) Serve(queue);
      ASSERT_EQ(queue.CheckInvariants(), absl::OkStatus());
    }
    while (queue.size() > 0) Serve(queue);
    EXPECT_EQ(sent_, served_);
  }

 private:
  void Send(AdmissionQueue& queue) {
    QueuedCall call;
    call.id = ++sent_;
    call.tenant = "t" + std::to_string(random_.Next() % 3);
    call.priority = static_cast<int32_t>(random_.Next() % 5) - 2;
    call.cost_tokens = 1 + random_.Next() % (random_.Next() % 4 == 0 ? 8000 : 100);
    call.since = now_;
    queue.Push(call, now_);
    waiting_[call.tenant][call.id] = call;
    if (waiting_[call.tenant].size() == 1) backlog_.clear();  // a new period in which the same tenants wait
  }

  void Serve(AdmissionQueue& queue) {
    AdmissionQueue::Round round(&queue);
    const std::optional<CallId> id = round.Next();
    if (!id) return;
    for (auto& [tenant, calls] : waiting_) {
      const auto it = calls.find(*id);
      if (it == calls.end()) continue;
      ExpectNobodyOvertakenForLong(it->second, calls);
      backlog_[tenant] += static_cast<double>(it->second.cost_tokens) / Weight(tenant);
      calls.erase(it);
      if (calls.empty()) backlog_.clear();
      break;
    }
    queue.Take(*id, now_);
    ++served_;
    ExpectShares();
  }

  // The most by which a later call of the same tenant may go before an earlier one.
  void ExpectNobodyOvertakenForLong(const QueuedCall& served, const std::map<CallId, QueuedCall>& calls) {
    const absl::Duration longest = options_.longest_patience + options_.priority_step * 4;
    for (const auto& [id, call] : calls) EXPECT_LE(served.since - call.since, longest);
  }

  // Of tenants that have waited all the time: tokens by weight, give or take the largest call of each.
  void ExpectShares() {
    for (const auto& [a, calls_a] : waiting_) {
      for (const auto& [b, calls_b] : waiting_) {
        if (calls_a.empty() || calls_b.empty()) continue;
        EXPECT_LE(backlog_[a] - backlog_[b], 8000 / Weight(a) + 8000 / Weight(b));
      }
    }
  }

  double Weight(const std::string& tenant) const {
    const auto it = options_.weights.find(tenant);
    return it == options_.weights.end() ? 1 : it->second;
  }

  SeededRandomSource random_;
  AdmissionOptions options_;
  absl::Time now_ = kStart;
  uint64_t sent_ = 0;
  uint64_t served_ = 0;
  std::map<std::string, std::map<CallId, QueuedCall>> waiting_;
  std::map<std::string, double> backlog_;  // tokens by weight of each, since all of them wait
};

TEST(AdmissionQueueProperties, NobodyStarvesAndSharesAreProportional) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    RandomLoad(seed).Run();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace baton
