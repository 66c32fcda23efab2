#include "client/worker_table.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// "WORKER_STATE_SERVING" as "serving".
std::string Word(const std::string& enumerator, const std::string& prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(enumerator, prefix));
}

// Blocks in use of all, group by group: "12/512".
std::string BlocksText(const v1::GetLoadResponse& load) {
  std::string text;
  for (const v1::BlockLoad& group : load.blocks()) {
    const uint64_t used = uint64_t{group.reserved()} + group.landing() + group.active() + group.draining();
    if (!text.empty()) text += " ";
    absl::StrAppendFormat(&text, "%d/%d", used, used + group.free());
  }
  return text.empty() ? "-" : text;
}

}  // namespace

std::vector<std::string> WorkerTable(const v1::ListWorkersResponse& workers) {
  constexpr char kRow[] = "%-8s %-22s %-13s %8s %8s %8s %10s %6s  %s";
  std::vector<std::string> lines = {absl::StrFormat(kRow, "role", "worker", "state", "assigned", "running",
                                                    "waiting", "wait.tok", "batch", "blocks used")};
  for (const v1::Worker& worker : workers.workers()) {
    const v1::GetLoadResponse& load = worker.load();
    const auto number = [](uint32_t value) { return StrCat(value); };
    std::string line = absl::StrFormat(kRow, Word(v1::Role_Name(worker.role()), "ROLE_"), worker.name(),
                                       Word(v1::WorkerState_Name(worker.state()), "WORKER_STATE_"),
                                       number(worker.assigned()), number(load.requests_running()),
                                       number(load.requests_waiting()), number(load.waiting_tokens()),
                                       number(load.batch_size()), BlocksText(load));
    if (!worker.state_reason().empty()) line += "  " + worker.state_reason();
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string RouterLine(const v1::GetServerInfoResponse& info, const v1::GetLoadResponse& load) {
  return absl::StrFormat("baton %s, %s, %d requests running, %d waiting", info.version(),
                         Word(v1::ServerState_Name(info.state()), "SERVER_STATE_"), load.requests_running(),
                         load.requests_waiting());
}

}  // namespace baton
