#include "client/status_command.h"

#include "absl/strings/str_format.h"
#include "client/describe.h"
#include "client/worker_table.h"
#include "common/status_macros.h"
#include "google/protobuf/util/json_util.h"

namespace baton {

Program StatusProgram() {
  return CommandProgram("status",
                        "Shows the router, its workers, their load and their KV blocks.\n\n"
                        "  baton status\n"
                        "  baton status --server 10.0.0.5:7600 --json");
}

std::vector<Option> Describe(StatusOptions* o) {
  return Joined({Option::Switch("json", &o->json, "Print the router's ListWorkers answer as JSON.")},
                Describe(&o->connection));
}

absl::StatusOr<std::vector<std::string>> StatusLines(RouterClient& client) {
  ASSIGN_OR_RETURN(const v1::GetServerInfoResponse info, client.GetServerInfo());
  ASSIGN_OR_RETURN(const v1::GetLoadResponse load, client.GetLoad());
  ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, client.ListWorkers());
  std::vector<std::string> lines = {RouterLine(info, load)};
  for (const v1::Worker& worker : workers.workers()) {
    if (!worker.has_model()) continue;
    lines.push_back(absl::StrFormat("model %s, %d tokens of context", worker.model().name(),
                                    worker.model().context_tokens()));
    break;
  }
  lines.emplace_back();
  for (std::string& line : WorkerTable(workers)) lines.push_back(std::move(line));
  return lines;
}

absl::Status RunStatus(const StatusOptions& options, std::FILE* out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterClient> connected, RouterClient::Create(options.connection));
  RouterClient& client = *connected;
  if (options.json) {
    ASSIGN_OR_RETURN(const v1::ListWorkersResponse workers, client.ListWorkers());
    std::string text;
    google::protobuf::util::JsonPrintOptions print;
    print.preserve_proto_field_names = true;
    print.add_whitespace = true;
    const auto status = google::protobuf::util::MessageToJsonString(workers, &text, print);
    if (!status.ok()) return absl::InternalError("ListWorkers' answer has no JSON form");
    std::fprintf(out, "%s", text.c_str());
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<std::string> lines, StatusLines(client));
  for (const std::string& line : lines) std::fprintf(out, "%s\n", line.c_str());
  return absl::OkStatus();
}

}  // namespace baton
