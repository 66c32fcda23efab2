#include "client/bench_command.h"

#include <memory>
#include <utility>

#include "client/bench_json.h"
#include "client/bench_report.h"
#include "client/describe.h"
#include "client/load.h"
#include "client/progress_bar.h"
#include "client/prompt_source.h"
#include "client/router_client.h"
#include "common/status_macros.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"

namespace baton {
namespace {

constexpr uint32_t kMost = 1'000'000;

absl::StatusOr<PromptSource> Prompts(const BenchOptions& options) {
  if (!options.prompts.empty()) return PromptSource::FromFile(options.prompts);
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterClient> connected, RouterClient::Create(options.connection));
  RouterClient& client = *connected;
  ASSIGN_OR_RETURN(const v1::GetModelInfoResponse info, client.GetModelInfo());
  if (info.model().vocab_size() == 0) {
    return absl::FailedPreconditionError(
        "the server names no vocabulary to draw prompts from; give --prompts");
  }
  return PromptSource::Synthetic(options.input_tokens, info.model().vocab_size(), options.load_seed);
}

LoadShape Shape(const BenchOptions& options) {
  LoadShape shape;
  shape.requests = options.requests;
  shape.warmup = options.warmup;
  shape.streams = options.streams;
  if (options.rate > 0) shape.requests_per_second = options.rate;
  shape.seed = options.load_seed;
  shape.timeout = options.connection.timeout;
  return shape;
}

// `form` is what every request has in common.
absl::StatusOr<LoadResult> RunLoad(const BenchOptions& options, const PromptSource& prompts,
                                   const v1::GenerateRequest& form, std::FILE* err) {
  std::vector<std::unique_ptr<v1::Inference::Stub>> stubs;
  for (uint32_t i = 0; i < options.connections; ++i) {
    ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, DialRouter(options.connection));
    stubs.push_back(v1::Inference::NewStub(channel));
  }
  const SteadyClock clock;
  ProgressBar bar(options.requests, err, &clock);
  Load load(
      std::move(stubs), Shape(options),
      [&](uint32_t index) {
        v1::GenerateRequest request = form;
        request.MergeFrom(prompts.Request(index));  // A line of the file may ask for something else.
        return request;
      },
      [&](uint32_t done, uint32_t failed) { bar.Show(done, failed); }, &clock);
  return load.Run();
}

}  // namespace

BenchOptions::BenchOptions() {
  request.temperature = 0;
  request.max_tokens = 64;
  request.ignore_eos = true;
}

Program BenchProgram() {
  return CommandProgram("bench",
                        "Sends load and reports TTFT, ITL, TPOT, E2E, tokens per second and goodput. Greedy "
                        "and of full length unless told\n"
                        "otherwise. A closed load keeps --streams requests in flight; an open one (--rate) "
                        "sends at the times of a Poisson\n"
                        "process, whatever is in flight, and counts a late start as waiting.\n\n"
                        "  baton bench --streams 8 --requests 64 --input-tokens 512 --max-tokens 128\n"
                        "  baton bench --rate 4 --requests 200 --slo-ttft-ms 300 --slo-tpot-ms 30\n"
                        "  baton bench --prompts prompts.jsonl --output json > result.json");
}

std::vector<Option> Describe(BenchOptions* o) {
  return Joined(
      {Option::Count("streams", &o->streams, {1, 10'000}, "requests", "In flight at once, of a closed load."),
       Option::Real("rate", &o->rate, {0, 100'000}, "requests/s", "Of an open load; 0: a closed one."),
       Option::Count("requests", &o->requests, {1, kMost}, "requests", "How many are measured."),
       Option::Count("warmup", &o->warmup, {0, kMost}, "requests", "Sent before, and not measured."),
       Option::Count("connections", &o->connections, {1, 64}, "connections", "To the server, used in turn."),
       Option::Count("load-seed", &o->load_seed, {0, ~uint64_t{0}}, "number",
                     "Of arrival times and synthetic prompts."),
       Option::Text("prompts", &o->prompts, "file",
                    "Prompts, used in turn: a line each, or a GenerateRequest in JSON on a line. Absent: "
                    "synthetic ones."),
       Option::Count("input-tokens", &o->input_tokens, {1, kMost}, "tokens", "Length of synthetic prompts."),
       Option::Real("slo-ttft-ms", &o->slo_ttft_ms, {0, 1e9}, "ms",
                    "Goodput counts requests within it; 0: no limit."),
       Option::Real("slo-tpot-ms", &o->slo_tpot_ms, {0, 1e9}, "ms", "The same for TPOT."),
       Option::Choice("output", &o->output, {"text", "json"}, "json has the key names of ghz.")},
      Describe(&o->request), Describe(&o->connection));
}

absl::Status RunBench(const BenchOptions& options, std::FILE* out, std::FILE* err) {
  ASSIGN_OR_RETURN(const PromptSource prompts, Prompts(options));
  v1::GenerateRequest form;
  RETURN_IF_ERROR(ApplyTo(options.request, form));
  ASSIGN_OR_RETURN(const LoadResult result, RunLoad(options, prompts, form, err));

  ServiceObjective objective;
  if (options.slo_ttft_ms > 0) objective.ttft_ms = options.slo_ttft_ms;
  if (options.slo_tpot_ms > 0) objective.tpot_ms = options.slo_tpot_ms;
  const BenchReport report = MakeBenchReport(result, objective);
  const std::string text = options.output == "json" ? BenchReportJson(report) : BenchReportText(report);
  std::fwrite(text.data(), 1, text.size(), out);
  if (report.succeeded == 0) {
    return absl::UnavailableError(StrCat("none of ", report.requests, " requests ended well"));
  }
  return absl::OkStatus();
}

}  // namespace baton
