// Times whole steps of a model in this process, as a paired run against another engine needs them: it reads
// one command a line from standard input and answers each with one line of JSON, so that whoever drives it
// decides what alternates with what.
//
//   engine_bench --model FILE [--threads 2] [--pin-threads] [--kernels auto] [--step-tokens 512]
//                [--context-tokens 2304] [--kv-memory 768MiB]
//
// First line out, once loaded:
//   {"ready":true,"version":V,"model":NAME,"kernels":LEVEL,"kernels_supported":[...],"kernels_unproven":[...],
//    "recipe":ID,"threads":N,"vocab_size":N,"weight_bytes":N,"load_seconds":S,"rss_bytes":N}
// Commands:
//   prefill TOKENS                a prompt of random tokens in steps of --step-tokens, to its last row's
//                                 logits
//   decode DEPTH STREAMS [STEPS]  STEPS (32) steps of one token for each of STREAMS sequences, all of DEPTH
//                                 tokens, each step to the logits of all. The sequences are computed untimed
//                                 the first time, and every further command begins again at DEPTH.
//     -> {"command":..., "tokens":N, "seconds":S, "tokens_per_second":R}
//   logits TOKENS_FILE OUT_FILE   TOKENS_FILE: token ids in decimal, apart by white space, one sequence from
//                                 its first token (BOS is not added). OUT_FILE, which may be a named pipe,
//                                 gets float32 [tokens][vocab_size], native order.
//     -> {"command":..., "tokens":N}
//   read_roof [MIB]               all threads read MIB (that of the weights) in order, the best of eight
//     -> {"command":..., "bytes":N, "gigabytes_per_second":R}
//   gemm_roof                     all threads multiply in registers, in AVX-512 (0 without it)
//     -> {"command":..., "int8_gops":R, "f32_gflops":R}
//   rss                           -> {"command":..., "rss_bytes":N, "peak_rss_bytes":N}
// A command that fails answers {"command":..., "error":TEXT}. The end of input ends the program. Logits of
// float32 come from --kernels reference. Warm-up is the driver's: it drops the first round.
#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/options.h"
#include "common/run_program.h"
#include "common/status_macros.h"
#include "common/str_cat.h"
#include "common/version.h"
#include "engine/bench_model.h"
#include "engine/ops/cpu/kernel_levels.h"
#include "engine/ops/cpu/machine_roof.h"
#include "nlohmann/json.hpp"

namespace baton {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kDefaultSteps = 32;

std::vector<Option> Describe(BenchModelOptions* o, bool* pin_threads) {
  return {
      Option::Text("model", &o->model, "path", "GGUF file of the model to time."),
      Option::Count("threads", &o->threads, {1, 1024}, "threads", "Threads of computation."),
      Option::Switch("pin-threads", pin_threads, "Keep the threads to the first cores, one on each."),
      Option::Choice("kernels", &o->kernels, KernelChoices(),
                     "CPU kernels; auto takes the best that this processor runs."),
      Option::Count("step-tokens", &o->step_tokens, {1, 4096}, "tokens", "Tokens of a prompt in one step."),
      Option::Count("context-tokens", &o->context_tokens, {1, 1 << 24}, "tokens",
                    "Tokens of a sequence, which the KV pools are cut for."),
      Option::Bytes("kv-memory", &o->kv_bytes, {1 << 16, uint64_t{1} << 40}, "Size of the KV pools."),
  };
}

// A line of /proc/self/status in bytes; 0 where there is none.
uint64_t MemoryOf(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) != 0) continue;
    std::istringstream value(line.substr(field.size() + 1));
    uint64_t kibibytes = 0;
    value >> kibibytes;
    return kibibytes * 1024;
  }
  return 0;
}

Json ReadyLine(const BenchModel& model, uint32_t threads, absl::Duration load) {
  std::vector<std::string> supported;
  std::vector<std::string> unproven;
  for (const KernelTable* kernels : SupportedKernels()) supported.push_back(kernels->name);
  for (const KernelTable* kernels : UnsupportedKernels()) unproven.push_back(kernels->name);
  return {{"ready", true},
          {"version", kVersion},
          {"model", model.config().name},
          {"kernels", model.kernels()},
          {"kernels_supported", supported},
          {"kernels_unproven", unproven},
          {"recipe", model.ops().recipe()},
          {"threads", threads},
          {"vocab_size", model.config().vocab_size},
          {"weight_bytes", model.ops().weight_bytes()},
          {"load_seconds", absl::ToDoubleSeconds(load)},
          {"rss_bytes", MemoryOf("VmRSS")}};
}

absl::StatusOr<Json> Timed(absl::StatusOr<BenchModel::Timing> timing) {
  RETURN_IF_ERROR(timing.status());
  const double seconds = absl::ToDoubleSeconds(timing->took);
  return Json{{"tokens", timing->tokens},
              {"seconds", seconds},
              {"tokens_per_second", static_cast<double>(timing->tokens) / seconds}};
}

absl::StatusOr<Json> WriteLogits(BenchModel& model, const std::string& from, const std::string& to) {
  std::ifstream in(from);
  const std::vector<TokenId> tokens{std::istream_iterator<TokenId>(in), std::istream_iterator<TokenId>()};
  if (tokens.empty() || !in.eof()) {
    return absl::InvalidArgumentError(StrCat(from, ": cannot be read, or is not token ids only"));
  }
  std::ofstream out(to, std::ios::binary);
  const auto write = [&](uint32_t, absl::Span<const float> logits) {
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size() * sizeof(float)));
    return out ? absl::OkStatus() : absl::UnavailableError(StrCat(to, ": cannot be written"));
  };
  RETURN_IF_ERROR(model.Logits(tokens, write));
  out.close();
  if (!out) return absl::UnavailableError(StrCat(to, ": cannot be written"));
  return Json{{"tokens", tokens.size()}};
}

absl::StatusOr<Json> Answer(BenchModel& model, const BenchModelOptions& options, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  words >> verb;
  if (verb == "prefill") {
    uint32_t tokens = 0;
    words >> tokens;
    return Timed(model.Prefill(tokens));
  }
  if (verb == "decode") {
    uint32_t depth = 0, streams = 0, steps = kDefaultSteps;
    words >> depth >> streams;
    if (!(words >> steps)) steps = kDefaultSteps;
    return Timed(model.Decode(depth, streams, steps));
  }
  if (verb == "logits") {
    std::string from, to;
    words >> from >> to;
    return WriteLogits(model, from, to);
  }
  if (verb == "read_roof") {
    uint64_t mebibytes = 0;
    if (!(words >> mebibytes) || mebibytes == 0)
      mebibytes = std::max<uint64_t>(1, model.ops().weight_bytes() >> 20);
    ASSIGN_OR_RETURN(const double rate, ReadRoof(options.threads, mebibytes << 20));
    return Json{{"bytes", mebibytes << 20}, {"gigabytes_per_second", rate / 1e9}};
  }
  if (verb == "gemm_roof") {
    const MultiplyRate rate = MultiplyRoof(options.threads);
    return Json{{"int8_gops", rate.int8_operations / 1e9}, {"f32_gflops", rate.f32_operations / 1e9}};
  }
  if (verb == "rss") return Json{{"rss_bytes", MemoryOf("VmRSS")}, {"peak_rss_bytes", MemoryOf("VmHWM")}};
  return absl::InvalidArgumentError(StrCat("\"", verb, "\" is no command"));
}

absl::Status Run(const BenchModelOptions& options) {
  if (options.model.empty()) return absl::InvalidArgumentError("model: name a GGUF file with --model");
  const absl::Time start = absl::Now();
  ASSIGN_OR_RETURN(const std::unique_ptr<BenchModel> model, BenchModel::Load(options));
  std::cout << ReadyLine(*model, options.threads, absl::Now() - start).dump() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    Json reply = {{"command", line}};
    const absl::StatusOr<Json> answer = Answer(*model, options, line);
    if (answer.ok()) {
      reply.update(*answer);
    } else {
      reply["error"] = std::string(answer.status().message());
    }
    std::cout << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  baton::BenchModelOptions options;
  bool pin_threads = false;
  const baton::Program program = {"engine_bench", "", "Times steps of a model, a command a line."};
  return baton::RunProgram(program, baton::Describe(&options, &pin_threads), argc, argv, [&] {
    for (uint32_t core = 0; pin_threads && core < options.threads; ++core) options.cores.push_back(core);
    return baton::Run(options);
  });
}
