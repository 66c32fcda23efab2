#include "tests/end_to_end/worker_node.h"

#include <thread>
#include <utility>

#include "common/check.h"
#include "common/drain_state.h"
#include "common/metrics.h"
#include "common/raw_socket.h"
#include "common/str_cat.h"
#include "decode_service/decode_server.h"
#include "prefill_service/prefill_server.h"

namespace baton {
namespace {

std::string FreeAddress() { return StrCat("127.0.0.1:", RawSocket::Listen().port()); }

}  // namespace

// What a process has from its start to its end.
struct WorkerNode::Process {
  explicit Process(const std::string& role) : metrics(role, "model") {}

  Metrics metrics;
  DrainState drain;
  std::unique_ptr<PrefillServer> prefill;  // one of the two
  std::unique_ptr<DecodeServer> decode;
  std::thread serving;
};

WorkerNode::WorkerNode(Options options)
    : options_(std::move(options)), address_(FreeAddress()), client_(address_) {}

WorkerNode::~WorkerNode() { Stop(); }

void WorkerNode::Start() {
  BATON_CHECK(!running());
  const GrpcServerOptions server = {.listen = address_};
  process_ = std::make_unique<Process>(role() == v1::ROLE_PREFILL ? "prefill" : "decode");
  if (role() == v1::ROLE_PREFILL) {
    auto started = PrefillServer::Start(server, options_.prefill, {options_.transport},
                                        {.engine = options_.engine,
                                         .device = device_.get(),
                                         .clock = &clock_,
                                         .random = &random_,
                                         .metrics = &process_->metrics,
                                         .drain = &process_->drain});
    BATON_CHECK(started.ok());
    process_->prefill = *std::move(started);
    process_->serving = std::thread(
        [this, process = process_.get()] { process->prefill->ServeUntilDrained(options_.drain); });
  } else {
    auto started = DecodeServer::Start(server, options_.decode, "", {options_.transport},
                                       {.engine = options_.engine,
                                        .device = device_.get(),
                                        .clock = &clock_,
                                        .random = &random_,
                                        .metrics = &process_->metrics,
                                        .drain = &process_->drain});
    BATON_CHECK(started.ok());
    process_->decode = *std::move(started);
    process_->serving =
        std::thread([this, process = process_.get()] { process->decode->ServeUntilDrained(options_.drain); });
  }
  static_cast<void>(client_.Load());      // connects
  BATON_CHECK(!client_.Abort("nobody"));  // answered by the loop of the worker, behind its warming up
}

void WorkerNode::Stop() {
  if (!running()) return;
  process_->drain.Hurry();
  process_->serving.join();
  process_.reset();
}

void WorkerNode::RequestDrain() { process_->drain.RequestDrain(); }

const std::string& WorkerNode::instance_id() const {
  BATON_CHECK(running());
  return process_->prefill != nullptr ? process_->prefill->instance_id() : process_->decode->instance_id();
}

absl::Status WorkerNode::CheckIdle() const {
  if (running()) {
    const size_t left = process_->drain.snapshot().running;
    if (left > 0) return absl::InternalError(StrCat(v1::Role_Name(role()), " has ", left, " calls"));
  }
  return options_.engine->kv().CheckAllFree();
}

}  // namespace baton
