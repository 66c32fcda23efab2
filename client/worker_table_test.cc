#include "client/worker_table.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

TEST(WorkerTable, OneLineForEachWorker) {
  v1::ListWorkersResponse workers;
  v1::Worker& worker = *workers.add_workers();
  worker.set_role(v1::ROLE_DECODE);
  worker.set_name("127.0.0.1:7620");
  worker.set_state(v1::WORKER_STATE_INCOMPATIBLE);
  worker.set_state_reason("another model");
  worker.set_assigned(3);
  worker.mutable_load()->set_batch_size(2);
  v1::BlockLoad& full = *worker.mutable_load()->add_blocks();
  full.set_free(500);
  full.set_active(8);
  full.set_landing(3);
  full.set_reserved(1);
  worker.mutable_load()->add_blocks()->set_free(64);
  const std::vector<std::string> lines = WorkerTable(workers);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1].substr(0, 45), "decode   127.0.0.1:7620         incompatible ");
  EXPECT_NE(lines[1].find("12/512 0/64  another model"), std::string::npos) << lines[1];
}

TEST(WorkerTable, RouterLine) {
  v1::GetServerInfoResponse info;
  info.set_version("1.2.3");
  info.set_state(v1::SERVER_STATE_DRAINING);
  v1::GetLoadResponse load;
  load.set_requests_running(4);
  EXPECT_EQ(RouterLine(info, load), "baton 1.2.3, draining, 4 requests running, 0 waiting");
}

}  // namespace
}  // namespace baton
