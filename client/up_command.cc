#include "client/up_command.h"

#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "client/connection_options.h"
#include "client/free_ports.h"
#include "client/process_group.h"
#include "client/router_client.h"
#include "common/ports.h"
#include "common/status_macros.h"
#include "common/steady_clock.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// Where tools/demo keeps the default model.
std::string DefaultModel() {
  const passwd* const user = getpwuid(getuid());
  return StrCat(user == nullptr ? "" : user->pw_dir, "/.cache/baton/models/SmolLM2-135M-Instruct.Q4_1.gguf");
}

std::string OwnFolder() {
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  const std::string self(path.data(), length > 0 ? static_cast<size_t>(length) : 0);
  return self.substr(0, self.rfind('/'));
}

// Beside this program where it is installed; in the folders of a build otherwise.
absl::StatusOr<std::string> FindBinary(const std::string& folder, const std::string& name) {
  const std::string own = folder.empty() ? OwnFolder() : folder;
  std::string built = name.substr(name.find('_') + 1);
  if (built != "router") built += "_service";
  for (const std::string& path : {StrCat(own, "/", name), StrCat(own, "/../", built, "/", name)}) {
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return absl::NotFoundError(StrCat("there is no ", name, " in ", own, "; name its folder with --binaries"));
}

// The cores that this process may use.
std::vector<int> OwnCores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

absl::StatusOr<std::vector<UpPorts>> ChoosePorts(const UpOptions& options) {
  const size_t processes = size_t{options.request.prefill} + options.request.decode + 1;
  ASSIGN_OR_RETURN(const std::vector<uint16_t> free, FreePorts(2 * processes));
  std::vector<UpPorts> ports;
  for (size_t i = 0; i < processes; ++i) ports.push_back({free[2 * i], free[2 * i + 1]});
  if (options.port != 0) {
    ports.back().listen = static_cast<uint16_t>(options.port);
  } else if (IsFreePort(kRouterPort)) {
    ports.back().listen = kRouterPort;
  }
  return ports;
}

// Whether the router has every worker and serves.
bool IsReady(RouterClient& client, size_t workers) {
  const absl::StatusOr<v1::ListWorkersResponse> list = client.ListWorkers();
  if (!list.ok()) return false;
  size_t serving = 0;
  for (const v1::Worker& worker : list->workers())
    serving += worker.state() == v1::WORKER_STATE_SERVING ? 1 : 0;
  return serving == workers;
}

// With which to ask the router; none in plaintext.
TlsFiles ClientFiles(const UpOptions& options) {
  const std::string& folder = options.request.tls;
  if (folder.empty()) return {};
  return {StrCat(folder, "/ca.pem"), StrCat(folder, "/client.pem"), StrCat(folder, "/client.key")};
}

void PrintReady(const UpOptions& options, const std::string& address, std::FILE* out) {
  const std::string server = address == ConnectionOptions().server ? "" : StrCat(" --server ", address);
  const TlsFiles files = ClientFiles(options);
  const bool tls = files.any();
  const std::string generate =
      tls ? StrCat(" --tls-ca ", files.ca, " --tls-cert ", files.cert, " --tls-key ", files.key) : "";
  const std::string grpcurl =
      tls ? StrCat("-cacert ", files.ca, " -cert ", files.cert, " -key ", files.key) : "-plaintext";
  std::fprintf(out,
               "baton is ready on %s. In another terminal:\n"
               "  baton generate 'Once upon a time'%s%s\n"
               "  grpcurl %s -d '{\"prompt\": \"Once upon a time\"}' %s baton.v1.Inference/GenerateStream\n"
               "Ctrl-C ends it.\n",
               address.c_str(), server.c_str(), generate.c_str(), grpcurl.c_str(), address.c_str());
  std::fflush(out);
}

absl::StatusOr<ProcessGroup::Event> WaitUntilReady(const UpOptions& options, const std::string& address,
                                                   ProcessGroup& group) {
  const SteadyClock clock;
  const absl::Time until = clock.Now() + options.ready_timeout;
  ConnectionOptions connection;
  connection.server = address;
  connection.timeout = absl::Milliseconds(500);
  connection.tls = ClientFiles(options);
  // Between calls nothing drives a handshake: a call that fails at once, while none has succeeded, never
  // would.
  connection.wait_for_ready = true;
  ASSIGN_OR_RETURN(const std::unique_ptr<RouterClient> client, RouterClient::Create(connection));
  const size_t workers = size_t{options.request.prefill} + options.request.decode;
  bool ready = false;
  ASSIGN_OR_RETURN(const ProcessGroup::Event event, group.Supervise(absl::Milliseconds(100), [&] {
    ready = IsReady(*client, workers);
    return ready || clock.Now() >= until;
  }));
  if (event == ProcessGroup::Event::kDone && !ready) {
    return absl::DeadlineExceededError(StrCat("the workers are not ready after ",
                                              absl::FormatDuration(options.ready_timeout),
                                              " (--ready-timeout)"));
  }
  return event;
}

absl::Status Serve(const UpOptions& options, const std::vector<PlannedProcess>& plan,
                   const std::string& address, ProcessGroup& group, std::FILE* out) {
  for (const PlannedProcess& process : plan) {
    ASSIGN_OR_RETURN(const std::string path, FindBinary(options.binaries, process.binary));
    RETURN_IF_ERROR(group.Start(process, path));
  }
  ASSIGN_OR_RETURN(const ProcessGroup::Event event, WaitUntilReady(options, address, group));
  if (event == ProcessGroup::Event::kInterrupted) return absl::OkStatus();
  PrintReady(options, address, out);
  return group.Supervise(absl::Hours(1), [] { return false; }).status();
}

}  // namespace

Program UpProgram() {
  return CommandProgram("up",
                        "Starts a router, prefill workers and decode workers on this machine and shows their "
                        "logs. Each worker has cores of its\n"
                        "own. Ctrl-C ends them all.\n\n"
                        "  baton up\n"
                        "  baton up --prefill 2 --decode 2 --model other.gguf\n"
                        "  baton up --prefill 0                  decode workers prefill too\n"
                        "  baton up --decode-flags=--kv-bytes=2GiB");
}

std::vector<Option> Describe(UpOptions* o) {
  if (o->request.model.empty()) o->request.model = DefaultModel();
  return {
      Option::Count("prefill", &o->request.prefill, {0, 64}, "workers",
                    "Prefill workers; 0: decode workers do it."),
      Option::Count("decode", &o->request.decode, {1, 64}, "workers", "Decode workers."),
      Option::Text("model", &o->request.model, "file", "The model that they serve, a GGUF file.")
          .WithDefaultText("SmolLM2-135M-Instruct, where tools/demo keeps it"),
      Option::Count(
          "port", &o->port, {0, 65535}, "port",
          StrCat("Of the router, on loopback; 0: ", kRouterPort, ", or a free one where that is taken.")),
      Option::Count("threads", &o->request.threads, {0, 1024}, "threads",
                    "Of each worker; 0: one for each of its cores."),
      Option::Text("tls", &o->request.tls, "folder",
                   "Of baton certs: every connection is encrypted and checked; absent: plaintext."),
      Option::Switch("pin", &o->pin, "Give each worker cores of its own."),
      Option::Text("binaries", &o->binaries, "folder",
                   "Where the services' binaries are; absent: with this program."),
      Option::Time("ready-timeout", &o->ready_timeout, {absl::Milliseconds(1), absl::Hours(24)},
                   "How long loading may take."),
      Option::Time("stop-timeout", &o->stop_timeout, {absl::ZeroDuration(), absl::Hours(24)},
                   "How long running requests may take to end after Ctrl-C."),
      Option::Texts("router-flags", &o->request.router_flags, "flag",
                    "Passed on to the router; may be given again."),
      Option::Texts("prefill-flags", &o->request.prefill_flags, "flag", "The same for prefill workers."),
      Option::Texts("decode-flags", &o->request.decode_flags, "flag", "The same for decode workers."),
  };
}

absl::Status RunUp(const UpOptions& options, std::FILE* out) {
  ASSIGN_OR_RETURN(const std::vector<UpPorts> ports, ChoosePorts(options));
  const std::vector<PlannedProcess> plan =
      MakeUpPlan(options.request, ports, options.pin ? OwnCores() : std::vector<int>());
  ProcessGroup group(out);
  const absl::Status status = Serve(options, plan, StrCat("127.0.0.1:", ports.back().listen), group, out);
  group.Stop(options.stop_timeout);
  return status;
}

}  // namespace baton
