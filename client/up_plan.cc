#include "client/up_plan.h"

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/check.h"
#include "common/str_cat.h"

namespace baton {
namespace {

// The cores of each worker, and of the router last.
std::vector<std::vector<int>> ShareOut(std::vector<int> cores, size_t workers) {
  std::vector<std::vector<int>> shares(workers + 1);
  if (cores.empty() || workers == 0) return shares;
  if (cores.size() > workers) {
    shares[workers] = {cores.back()};
    cores.pop_back();
  }
  for (size_t i = 0; i < std::max(cores.size(), workers); ++i) {
    shares[i % workers].push_back(cores[i % cores.size()]);
  }
  return shares;
}

std::string Loopback(uint16_t port) { return StrCat("127.0.0.1:", port); }

void Append(std::vector<std::string>& arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

// What every process is told; `role` names its files in the folder of certificates.
std::vector<std::string> CommonArguments(const UpRequest& request, const UpPorts& ports,
                                         const std::string& role) {
  std::vector<std::string> arguments = {"--listen",         Loopback(ports.listen),
                                        "--metrics-listen", Loopback(ports.metrics),
                                        "--model",          request.model};
  if (request.tls.empty()) return arguments;
  Append(arguments,
         {"--tls-ca", StrCat(request.tls, "/ca.pem"), "--tls-cert", StrCat(request.tls, "/", role, ".pem"),
          "--tls-key", StrCat(request.tls, "/", role, ".key")});
  return arguments;
}

}  // namespace

std::vector<PlannedProcess> MakeUpPlan(const UpRequest& request, const std::vector<UpPorts>& ports,
                                       const std::vector<int>& cores) {
  const size_t workers = size_t{request.prefill} + request.decode;
  BATON_CHECK(ports.size() == workers + 1);
  const std::vector<std::vector<int>> shares = ShareOut(cores, workers);
  std::vector<PlannedProcess> plan;
  std::vector<std::string> prefill_addresses, decode_addresses;
  for (size_t i = 0; i < workers; ++i) {
    const bool is_prefill = i < request.prefill;
    const std::string address = Loopback(ports[i].listen);
    (is_prefill ? prefill_addresses : decode_addresses).push_back(address);
    PlannedProcess process;
    process.name = is_prefill ? StrCat("prefill", i) : StrCat("decode", i - request.prefill);
    process.binary = is_prefill ? "baton_prefill" : "baton_decode";
    process.arguments = CommonArguments(request, ports[i], is_prefill ? "prefill" : "decode");
    process.cores = shares[i];
    const size_t threads = request.threads > 0 ? request.threads : process.cores.size();
    if (threads > 0) Append(process.arguments, {"--threads", StrCat(threads)});
    Append(process.arguments, is_prefill ? request.prefill_flags : request.decode_flags);
    plan.push_back(std::move(process));
  }
  PlannedProcess router;
  router.name = "router";
  router.binary = "baton_router";
  router.arguments = CommonArguments(request, ports[workers], "router");
  if (!prefill_addresses.empty())
    Append(router.arguments, {"--prefill", absl::StrJoin(prefill_addresses, ",")});
  if (!decode_addresses.empty()) Append(router.arguments, {"--decode", absl::StrJoin(decode_addresses, ",")});
  Append(router.arguments, request.router_flags);
  router.cores = shares[workers];
  plan.push_back(std::move(router));
  return plan;
}

}  // namespace baton
