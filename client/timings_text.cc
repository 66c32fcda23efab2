#include "client/timings_text.h"

#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace baton {
namespace {

struct Part {
  const char* name;
  bool present;
  double ms;
};

std::string Sum(const std::vector<Part>& parts) {
  std::vector<std::string> shown;
  for (const Part& part : parts) {
    if (part.present) shown.push_back(absl::StrFormat("%s %.2f", part.name, part.ms));
  }
  return shown.empty() ? "" : " = " + absl::StrJoin(shown, " + ");
}

std::string TtftLine(const v1::Timings& t) {
  return absl::StrFormat("TTFT %8.2f ms", t.ttft_ms()) +
         Sum({{"tokenize", t.has_tokenize_ms(), t.tokenize_ms()},
              {"router queue", t.has_router_queue_ms(), t.router_queue_ms()},
              {"reservation", t.has_reservation_ms(), t.reservation_ms()},
              {"prefill queue", t.has_prefill_queue_ms(), t.prefill_queue_ms()},
              {"prefill compute", t.has_prefill_compute_ms(), t.prefill_compute_ms()},
              {"lost attempts", t.lost_attempts_ms() > 0, t.lost_attempts_ms()},
              {"network", t.has_network_ms(), t.network_ms()}}) +
         "\n";
}

std::string TpotLine(const v1::Timings& t) {
  const std::string parts = Sum({{"handoff", t.has_handoff_ms(), t.handoff_ms()},
                                 {"decode queue", t.has_decode_queue_ms(), t.decode_queue_ms()},
                                 {"first step", t.has_first_step_ms(), t.first_step_ms()},
                                 {"network", t.has_first_gap_network_ms(), t.first_gap_network_ms()}});
  return absl::StrFormat("TPOT %8.2f ms (%.1f tokens/s)", t.tpot_ms(),
                         t.tpot_ms() > 0 ? 1000 / t.tpot_ms() : 0) +
         (parts.empty() ? "" : "; the first gap" + parts) + "\n";
}

std::string EndText(const v1::Finish& finish) {
  switch (finish.reason()) {
    case v1::FINISH_REASON_STOP:
      if (finish.has_stop_string()) return "a stop string";
      return "the model";
    case v1::FINISH_REASON_LENGTH:
      return "its length";
    case v1::FINISH_REASON_TIME_LIMIT:
      return "its time limit";
    default:
      return "an unknown reason";
  }
}

std::string PathText(const v1::Timings& t) {
  std::string text =
      t.path() == v1::SERVING_PATH_DISAGGREGATED ? "prefill and decode apart" : "decode worker alone";
  if (!t.path_reason().empty()) text += " (" + t.path_reason() + ")";
  if (t.kv_bytes() > 0) text += absl::StrFormat(", %.2f MB of KV handed off", t.kv_bytes() / 1e6);
  if (t.kv_bytes() > 0 && t.has_transport()) text += " over " + t.transport();
  if (t.recoveries() > 0) text += absl::StrFormat(", %d recoveries", t.recoveries());
  return text;
}

}  // namespace

std::string TimingsText(const v1::GenerateStreamResponse& last) {
  const v1::Timings& t = last.timings();
  std::string text;
  if (t.has_ttft_ms()) text += TtftLine(t);
  if (t.has_tpot_ms()) text += TpotLine(t);
  if (t.has_e2e_ms()) text += absl::StrFormat("E2E  %8.2f ms", t.e2e_ms());
  if (t.has_e2e_ms() && t.has_path()) text += "; " + PathText(t);
  if (t.has_e2e_ms()) text += "\n";
  if (last.has_usage()) {
    text += absl::StrFormat("%d prompt tokens, %d tokens in the answer", last.usage().prompt_tokens(),
                            last.usage().completion_tokens());
    if (last.has_finish()) text += ", ended by " + EndText(last.finish());
    text += "\n";
  }
  return text;
}

}  // namespace baton
