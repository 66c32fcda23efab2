#ifndef BATON_ROUTER_ROUTER_OPTIONS_H_
#define BATON_ROUTER_ROUTER_OPTIONS_H_

#include <string>
#include <vector>

#include "common/credentials.h"
#include "common/drain_sequence.h"
#include "common/grpc_server.h"
#include "common/option.h"
#include "common/options.h"
#include "router/inference_service.h"
#include "router/router.h"
#include "router/worker_watch.h"

namespace baton {

// The router's options, declared once: members here, names and help in DescribeRouter.
struct RouterProgramOptions {
  RouterProgramOptions();

  GrpcServerOptions server;  // its `credentials` are made from the next member
  CredentialOptions credentials;
  std::string metrics_listen;  // host:port; empty: no metrics are served
  std::string model;           // the GGUF file that the workers serve
  WorkerWatch::Options watch;
  RouterOptions router;
  std::vector<std::string> tenant_weights;  // name=weight; the router's own are made from these
  InferenceService::Options inference;
  DrainOptions drain;
  std::string log_format = "text";
  std::string log_level = "info";
};

Program RouterProgram();
std::vector<Option> DescribeRouter(RouterProgramOptions* options);

}  // namespace baton

#endif  // BATON_ROUTER_ROUTER_OPTIONS_H_
