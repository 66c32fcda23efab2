#include "router/router.h"

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common/error_details.h"
#include "common/error_reasons.h"
#include "common/seeded_random_source.h"
#include "common/str_cat.h"
#include "gtest/gtest.h"
#include "router/router_metrics.h"
#include "tests/support/byte_tokenizer.h"
#include "tests/support/worker_info.h"

namespace baton {
namespace {

const absl::Status kLost = absl::UnavailableError("reset");

// A router whose workers are played by the test, under a clock that it sets.
class RouterTest : public ::testing::Test {
 protected:
  // "p..." is a prefill worker, any other name a decode worker.
  void Serve(const std::string& name, const std::string& instance, const std::string& fingerprint = "hash/a",
             const std::string& recipe = "r") {
    const v1::Role role = name[0] == 'p' ? v1::ROLE_PREFILL : v1::ROLE_DECODE;
    v1::GetServerInfoResponse info = WorkerInfo(role, instance, fingerprint);
    info.mutable_model()->set_prefill_recipe(recipe);
    info.mutable_model()->set_decode_recipe(recipe);
    info.mutable_limits()->set_block_tokens(16);
    info.mutable_limits()->set_kv_capacity_tokens(4096);
    info.mutable_limits()->set_max_running(16);
    router().workers().Add(name, role);
    router().workers().OnInfo(name, info, now);
    Changed();
  }
  void Changed() {
    Perform(router().OnWorkersChanged(now));
    metrics.OnWorkers(router().workers().List());
    Note();
  }

  CallId Call(const std::string& tenant = "", uint32_t prompt = 10, uint32_t max_tokens = 8) {
    CallSpec spec;
    spec.request_id = StrCat("r", ++last_call_);
    spec.tenant = tenant;
    spec.prompt.assign(prompt, 'a');
    spec.max_tokens = max_tokens;
    spec.stop_ids = {ByteTokenizer::kEnd};
    spec.tokenize = absl::Milliseconds(1);
    spec.arrival = now;
    spec.deadline = now + absl::Minutes(10);
    Perform(router().OnCall(last_call_, std::move(spec), now));
    return last_call_;
  }

  void Perform(const RouterActions& actions) {
    for (const RouterAction& action : actions) {
      if (const auto* decode = std::get_if<OpenDecodeLeg>(&action)) {
        legs[decode->key.call] = {decode->key.attempt, "", decode->worker};
        ++opened;
      } else if (const auto* prefill = std::get_if<OpenPrefillLeg>(&action)) {
        legs[prefill->key.call].prefill = prefill->worker;
      } else if (const auto* send = std::get_if<SendToClient>(&action)) {
        metrics.OnSend(*send);
        tokens[send->call] += send->response.count();
      } else if (const auto* end = std::get_if<EndCall>(&action)) {
        metrics.OnEnd(*end);
        ends[end->call] = *end;
        legs.erase(end->call);
      } else if (const auto* lost = std::get_if<AttemptLost>(&action)) {
        metrics.OnAttemptLost(*lost);
        legs.erase(lost->call);
      } else if (std::get_if<RetryHeld>(&action) != nullptr) {
        metrics.OnRetryHeld();
        ++held;
      }
    }
    metrics.OnLoad(router().calls() - router().queued(), router().queued(), router().waiting_tokens());
    Note();
    EXPECT_EQ(router().CheckInvariants(), absl::OkStatus());
  }

  // Time passes, and the router's timers fire.
  void Pass(absl::Duration time) {
    const absl::Time end = now + time;
    while (router().next_timer() <= end) {
      now = std::max(now, router().next_timer());
      Perform(router().OnTimer(now));
    }
    now = end;
  }

  LegKey Key(CallId call, Leg leg) const { return {call, legs.at(call).attempt, leg}; }
  void Reserved(CallId call) {
    v1::DecodeEvent event;
    event.mutable_reserved()->mutable_landing();
    Perform(router().OnDecodeEvent(Key(call, Leg::kDecode), event, now));
  }
  void FirstToken(CallId call) {
    v1::PrefillEvent event;
    event.mutable_first_token()->mutable_token()->set_id('x');
    Perform(router().OnPrefillEvent(Key(call, Leg::kPrefill), event, now));
  }
  void Landed(CallId call) {
    v1::DecodeEvent event;
    event.mutable_landed()->set_kv_bytes(1);
    Perform(router().OnDecodeEvent(Key(call, Leg::kDecode), event, now));
  }
  void Token(CallId call, uint32_t index, TokenId id) {
    v1::DecodeEvent event;
    event.mutable_tokens()->set_index(index);
    event.mutable_tokens()->add_tokens()->set_id(id);
    Perform(router().OnDecodeEvent(Key(call, Leg::kDecode), event, now));
  }
  void Close(CallId call, Leg leg, const absl::Status& status = kLost) {
    Perform(router().OnLegClosed(Key(call, leg), status, now));
  }
  void UpToToken0(CallId call) {
    Reserved(call);
    FirstToken(call);
  }
  void Finish(CallId call) {
    Landed(call);
    Token(call, tokens[call], ByteTokenizer::kEnd);
  }
  std::string Pair(CallId call) const {
    const auto it = legs.find(call);
    return it == legs.end() ? "" : it->second.prefill + "+" + it->second.decode;
  }

  Router& router() {
    if (router_ == nullptr) router_ = std::make_unique<Router>(options, "hash", &tokenizer_, &random_);
    return *router_;
  }

  // The metrics that have moved so far.
  void Note() {
    if (!notes_metrics) return;
    std::istringstream text(all_metrics_.Text());
    for (std::string line; std::getline(text, line);) {
      const size_t name = line.find_first_of("{ ");
      const size_t value = line.rfind(' ');
      if (line[0] != '#' && std::stod(line.substr(value)) != 0) moved.insert(line.substr(0, name));
    }
  }

  struct Legs {
    uint32_t attempt = 0;
    std::string prefill;
    std::string decode;
  };

  absl::Time now = absl::FromUnixSeconds(1000);
  RouterOptions options;
  std::map<CallId, Legs> legs;
  std::map<CallId, EndCall> ends;
  std::map<CallId, uint32_t> tokens;
  int opened = 0;
  int held = 0;
  bool notes_metrics = false;
  std::set<std::string> moved;

 private:
  Metrics all_metrics_{"router", "m"};

 protected:
  RouterMetrics metrics{&all_metrics_};

 private:
  ByteTokenizer tokenizer_;
  SeededRandomSource random_{1};
  std::unique_ptr<Router> router_;
  CallId last_call_ = 0;
};

TEST_F(RouterTest, AWorkerThatHangsIsLeftWithinThreeSeconds) {
  for (const char* name : {"p0", "p1", "d0"}) Serve(name, StrCat(name, "-1"));
  const CallId call = Call();
  Reserved(call);
  const std::string before = Pair(call);
  const absl::Time hung = now;
  while (Pair(call) == before) {
    Pass(absl::Milliseconds(250));
    if (!legs.contains(call)) continue;
    v1::DecodeEvent alive;
    alive.mutable_progress()->set_steps(1);
    Perform(router().OnDecodeEvent(Key(call, Leg::kDecode), alive, now));
  }
  Pass(absl::Milliseconds(50));
  EXPECT_LT(now - hung, absl::Seconds(3));
  UpToToken0(call);
  EXPECT_NE(Pair(call), before);
  Finish(call);
  EXPECT_TRUE(ends[call].status.ok());
  EXPECT_EQ(ends[call].timings.recoveries(), 1);
}

TEST_F(RouterTest, APairThatCannotReachEachOtherIsAvoidedByEverybody) {
  for (const char* name : {"p0", "p1", "d0"}) Serve(name, StrCat(name, "-1"));
  const CallId first = Call();
  Reserved(first);
  const std::string broken = Pair(first);
  Close(first, Leg::kPrefill, WithErrorInfo(kLost, kReasonHandoffFailed));
  Pass(absl::Milliseconds(50));
  Reserved(first);
  EXPECT_NE(Pair(first), broken);
  for (int i = 0; i < 4; ++i) {
    const CallId other = Call();
    Reserved(other);
    EXPECT_NE(Pair(other), broken);
  }
  // It is tried again, by one.
  now += Suspicion::kFirst;
  int tries = 0;
  for (int i = 0; i < 4; ++i) {
    const CallId other = Call();
    Reserved(other);
    tries += Pair(other) == broken;
  }
  EXPECT_EQ(tries, 1);
}

TEST_F(RouterTest, PrefillScaledToZeroAndBack) {
  Serve("p0", "p0-1");
  Serve("d0", "d0-1");
  router().workers().Remove("p0");
  Changed();
  const CallId without = Call();
  Reserved(without);
  EXPECT_EQ(Pair(without), "+d0");
  Serve("p0", "p0-2");
  const CallId with = Call();
  Reserved(with);
  EXPECT_EQ(Pair(with), "p0+d0");
}

TEST_F(RouterTest, TwoRevisionsSideBySideNeverMeet) {
  for (const char* name : {"p0", "d0"}) Serve(name, StrCat(name, "-1"), "hash/a");
  const CallId begun = Call(), waits = Call();
  for (CallId call : {begun, waits}) Reserved(call);
  FirstToken(begun);
  // The other revision arrives, and the first one's decode worker leaves.
  for (const char* name : {"p1", "d1"}) Serve(name, StrCat(name, "-1"), "hash/b");
  for (CallId call : {begun, waits}) Close(call, Leg::kDecode, WithErrorInfo(kLost, kReasonDraining));
  Pass(absl::Seconds(1));
  // A call without tokens goes to the other group, as a whole. An answer that has begun waits for its own.
  Reserved(waits);
  EXPECT_EQ(Pair(waits), "p1+d1");
  EXPECT_EQ(Pair(begun), "");
  Serve("d2", "d2-1", "hash/a");
  Pass(absl::Seconds(1));
  UpToToken0(begun);
  EXPECT_EQ(Pair(begun), "p0+d2");
  Finish(begun);
  EXPECT_TRUE(ends[begun].status.ok());
  EXPECT_EQ(ends[begun].usage.completion_tokens(), 2);
}

TEST_F(RouterTest, AnAnswerWhoseGroupIsGoneEndsInBoundedTime) {
  for (const char* name : {"p0", "d0"}) Serve(name, StrCat(name, "-1"), "hash/a");
  const CallId call = Call();
  UpToToken0(call);
  Serve("d1", "d1-1", "hash/b");
  Close(call, Leg::kDecode, WithErrorInfo(kLost, kReasonDraining));
  Pass(options.call.resume_wait + absl::Seconds(1));
  EXPECT_EQ(ErrorReason(ends[call].status), "NO_WORKER");
}

TEST_F(RouterTest, ARollingRestartOfEveryWorkerLosesNothing) {
  for (const char* name : {"p0", "p1", "d0", "d1"}) Serve(name, StrCat(name, "-1"));
  std::vector<CallId> calls;
  for (int i = 0; i < 8; ++i) calls.push_back(Call());
  for (CallId call : calls) UpToToken0(call);
  for (const std::string name : {"p0", "p1", "d0", "d1"}) {
    for (CallId call : calls) {
      if (legs.at(call).decode == name) Close(call, Leg::kDecode, WithErrorInfo(kLost, kReasonDraining));
      if (legs.contains(call) && legs.at(call).prefill == name) {
        Close(call, Leg::kPrefill, WithErrorInfo(kLost, kReasonDraining));
      }
    }
    Pass(absl::Seconds(1));
    Serve(name, name + "-2");
    Pass(absl::Seconds(1));
    for (CallId call : calls) {
      ASSERT_TRUE(legs.contains(call)) << name;
      if (legs.at(call).prefill.empty()) UpToToken0(call);
    }
  }
  for (CallId call : calls) Finish(call);
  for (CallId call : calls) EXPECT_TRUE(ends[call].status.ok()) << ends[call].status;
}

TEST_F(RouterTest, AReplacedProcessEndsTheLegsToTheOneBefore) {
  for (const char* name : {"p0", "d0"}) Serve(name, StrCat(name, "-1"));
  const CallId call = Call();
  UpToToken0(call);
  Serve("d0", "d0-2");  // before anything was heard of the connection
  Pass(absl::Milliseconds(50));
  EXPECT_EQ(legs.at(call).attempt, 1);
}

TEST_F(RouterTest, RetriesBeyondTheBudgetWaitForIt) {
  options.retries = {.per_request = 0, .per_second = 1, .least_burst = 2};
  for (const char* name : {"p0", "p1", "d0"}) Serve(name, StrCat(name, "-1"));
  std::vector<CallId> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(Call());
  for (CallId call : calls) Reserved(call);
  for (CallId call : calls) Close(call, Leg::kPrefill);
  Serve("p0", "p0-2");
  Serve("p1", "p1-2");
  Pass(absl::Milliseconds(200));
  EXPECT_EQ(legs.size(), 2);
  EXPECT_GT(held, 0);
  Pass(absl::Seconds(1));
  EXPECT_EQ(legs.size(), 3);
  Pass(absl::Seconds(1));
  EXPECT_EQ(legs.size(), 4);
  EXPECT_TRUE(ends.empty());
}

TEST_F(RouterTest, ATenantThatSendsMuchDoesNotDelayTheOthers) {
  options.picker.prefill_depth_tokens = 10;
  for (const char* name : {"p0", "d0"}) Serve(name, StrCat(name, "-1"));
  std::vector<CallId> greedy;
  for (int i = 0; i < 10; ++i) greedy.push_back(Call("greedy"));
  const CallId modest = Call("modest");
  EXPECT_EQ(legs.size(), 1);
  UpToToken0(greedy[0]);
  EXPECT_TRUE(legs.contains(modest) || legs.contains(greedy[1]));
  for (CallId call : {greedy[1], modest}) {
    if (legs.contains(call)) UpToToken0(call);
  }
  EXPECT_TRUE(legs.contains(modest));
}

TEST_F(RouterTest, AHugeRequestWaitsForOneWorkerAndTheOthersGoOn) {
  options.admission.longest_patience = absl::ZeroDuration();  // it is its turn at once
  for (const char* name : {"d0", "d1"}) Serve(name, StrCat(name, "-1"));
  std::vector<CallId> running;
  for (int i = 0; i < 8; ++i) running.push_back(Call("", 100, 700));
  const CallId huge = Call("", 2000, 2000);
  Pass(options.overtake_limit);
  std::vector<CallId> small;
  for (int i = 0; i < 4; ++i) small.push_back(Call("", 10, 10));
  std::set<std::string> used;
  for (CallId call : small) used.insert(legs.at(call).decode);
  EXPECT_EQ(used.size(), 1);
  EXPECT_FALSE(legs.contains(huge));
  // Its worker empties, and it is served though others have come all the time.
  const std::string kept = *used.begin() == "d0" ? "d1" : "d0";
  for (CallId call : running) {
    if (legs.at(call).decode != kept) continue;
    Reserved(call);
    Token(call, 0, ByteTokenizer::kEnd);
  }
  ASSERT_TRUE(legs.contains(huge));
  EXPECT_EQ(legs.at(huge).decode, kept);
}

TEST_F(RouterTest, EveryMetricMoves) {
  notes_metrics = true;
  options.retries = {.per_request = 0, .per_second = 1, .least_burst = 0.5};
  options.picker.prefill_depth_tokens = 10;
  for (const char* name : {"p0", "d0"}) Serve(name, StrCat(name, "-1"));
  const CallId first = Call();
  const CallId second = Call();  // waits for its turn
  Pass(absl::Milliseconds(5));
  UpToToken0(first);
  Pass(absl::Milliseconds(5));
  Landed(first);
  Pass(absl::Milliseconds(5));
  Token(first, 1, 'y');
  Pass(absl::Milliseconds(5));
  // Both lose their decode worker; the one that is there afterwards has another recipe.
  Reserved(second);
  for (CallId call : {first, second}) Close(call, Leg::kDecode);
  Serve("p1", "p1-1");
  Serve("d0", "d0-2", "hash/a", "another");
  Pass(absl::Seconds(2));
  UpToToken0(first);
  Finish(first);
  Perform(router().OnClientGone(second, now));
  EXPECT_TRUE(ends[first].status.ok());
  for (const Metric id : kRouterMetrics) {
    const MetricRow& row = RowOf(id);
    const std::string name =
        StrCat(std::string(row.name), row.type == MetricType::kHistogram ? "_count" : "");
    EXPECT_TRUE(moved.contains(name)) << name;
  }
  // And nothing is exported that the table of the router's metrics leaves out.
  std::set<std::string> known = {std::string(RowOf(Metric::kBuildInfo).name)};  // of every process
  for (const Metric id : kRouterMetrics) known.insert(std::string(RowOf(id).name));
  for (std::string name : moved) {
    for (const char* suffix : {"_count", "_sum", "_bucket"}) {
      if (name.ends_with(suffix)) name.resize(name.size() - std::string_view(suffix).size());
    }
    EXPECT_TRUE(!name.starts_with("baton_") || known.contains(name)) << name;
  }
}

}  // namespace
}  // namespace baton
