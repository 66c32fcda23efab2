#ifndef BATON_DECODE_SERVICE_DECODE_SCHEDULER_TEST_H_
#define BATON_DECODE_SERVICE_DECODE_SCHEDULER_TEST_H_

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/seeded_random_source.h"
#include "decode_service/decode_scheduler.h"
#include "gtest/gtest.h"
#include "tests/support/leg_requests.h"
#include "tests/support/scripted_engine.h"

namespace baton {

// A scheduler over a scripted engine. The test is the loop, and the prefill worker too.
class DecodeSchedulerTest : public testing::Test {
 protected:
  explicit DecodeSchedulerTest(const DecodeSchedulerOptions& options = {.chunk_tokens = 64},
                               const ScriptedEngine::Options& engine = kEngine)
      : engine_(engine), scheduler_(Named(options), &engine_.info(), &engine_.kv(), &random_) {}
  ~DecodeSchedulerTest() override {
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
  }

  static DecodeSchedulerOptions Named(DecodeSchedulerOptions options) {
    options.instance_id = "decode-1";
    options.advertise = "decode:1";
    options.transports = {"grpc"};
    return options;
  }

  // What the actions did: events by leg, ends by leg, landings as the transfer side would hold them.
  struct Leg {
    std::vector<TokenId> tokens;
    std::vector<v1::DecodeEvent> others;
    v1::Tokens first_decoded;  // the message that carries the decode queue
    v1::Tokens first;
    std::optional<absl::Status> closed;
  };
  void Perform(DecodeScheduler::Actions actions) {
    for (DecodeScheduler::Action& action : actions) {
      if (auto* send = std::get_if<DecodeScheduler::SendEvent>(&action)) {
        Leg& leg = legs_[send->leg];
        EXPECT_FALSE(leg.closed.has_value());
        if (!send->event.has_tokens()) {
          leg.others.push_back(send->event);
          continue;
        }
        EXPECT_EQ(send->event.tokens().index(), leg.tokens.size() + replayed_[send->leg]);
        for (const v1::LegToken& token : send->event.tokens().tokens()) leg.tokens.push_back(token.id());
        if (send->event.tokens().has_decode_queue_ms()) leg.first_decoded = send->event.tokens();
        if (send->event.tokens().index() == 0) leg.first = send->event.tokens();
      } else if (auto* close = std::get_if<DecodeScheduler::CloseLeg>(&action)) {
        EXPECT_FALSE(legs_[close->leg].closed.has_value());
        legs_[close->leg].closed = close->status;
      } else if (auto* start = std::get_if<DecodeScheduler::StartLanding>(&action)) {
        landings_[start->spec.transfer_id] = std::move(start->spec);
      } else if (auto* preempted = std::get_if<DecodeScheduler::Preempted>(&action)) {
        EXPECT_EQ(++preemptions_[preempted->request_id], preempted->nth);
        dropped_tokens_ += preempted->tokens;
      } else if (auto* resumed = std::get_if<DecodeScheduler::Resumed>(&action)) {
        recomputed_tokens_ += resumed->tokens;
      } else {
        EXPECT_EQ(landings_.erase(std::get<DecodeScheduler::DropLanding>(action).transfer_id), 1);
      }
    }
    EXPECT_TRUE(scheduler_.CheckInvariants().ok()) << scheduler_.CheckInvariants();
  }
  void Begin(LegId leg, const v1::DecodeRequest& request, absl::Time deadline = absl::InfiniteFuture()) {
    replayed_[leg] = static_cast<size_t>(request.request().output_size());
    Perform(scheduler_.OnRequest(leg, request, now_, deadline, now_));
  }
  // The KV of `prompt` arrives, as a prefill worker's engine would have written it, with its first token.
  void Land(uint8_t transfer, const std::vector<TokenId>& prompt, bool with_token = true) {
    const TransferId id = Transfer(transfer);
    LandingSpec spec = std::move(landings_.at(id));
    landings_.erase(id);
    SequenceStep step;
    step.kv = &spec.kv;
    for (uint32_t begin = 0; begin < prompt.size(); begin += 64) {
      step.tokens = absl::MakeConstSpan(prompt).subspan(begin, 64);
      step.position = begin;
      engine_.Execute({{step}}, nullptr);
    }
    landing::Landed landed{id, std::move(spec.kv), {}, 1000, "grpc"};
    if (with_token) landed.commit.mutable_first_token()->set_id(Answer(prompt, 1).front());
    landed.commit.set_prefill_queue_ms(2);
    landed.commit.set_prefill_compute_ms(5);
    Perform(scheduler_.OnLanded(std::move(landed), now_));
  }
  // Runs one step, if there is one; `during` is called while it runs.
  bool Step(const std::function<void()>& during = [] {}) {
    DecodeScheduler::Actions actions;
    const std::optional<StepPlan> plan = scheduler_.StartStep(now_, actions);
    Perform(std::move(actions));
    if (!plan) return false;
    rows_.push_back(plan->rows());
    const StepResult result = engine_.Execute(*plan, nullptr);
    during();
    now_ += absl::Milliseconds(10);
    Perform(scheduler_.OnStepDone(result, now_));
    return true;
  }
  void StepAll() {
    while (Step()) {
    }
  }
  static TransferId Transfer(uint8_t number) {
    return *TransferId::FromBytes(MakeAttempt(number).transfer_id());
  }
  static std::vector<TokenId> Answer(const std::vector<TokenId>& prompt, uint32_t tokens) {
    return ScriptedEngine::ExpectedAnswer(kEngine, prompt, tokens);
  }
  void ExpectIdle() {
    EXPECT_EQ(scheduler_.open_legs(), 0);
    EXPECT_TRUE(landings_.empty());
    EXPECT_TRUE(engine_.kv().CheckAllFree().ok()) << engine_.kv().CheckAllFree();
  }

  static constexpr ScriptedEngine::Options kEngine = {.kv_bytes = 1 << 19, .context_tokens = 512};
  ScriptedEngine engine_;
  SeededRandomSource random_{1};
  DecodeScheduler scheduler_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::map<LegId, Leg> legs_;
  std::map<LegId, size_t> replayed_;
  std::map<TransferId, LandingSpec> landings_;
  std::vector<uint32_t> rows_;                   // of each step
  std::map<std::string, uint32_t> preemptions_;  // by request
  uint32_t dropped_tokens_ = 0;
  uint32_t recomputed_tokens_ = 0;
};

}  // namespace baton

#endif  // BATON_DECODE_SERVICE_DECODE_SCHEDULER_TEST_H_
