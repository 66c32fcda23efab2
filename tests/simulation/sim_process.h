#ifndef BATON_TESTS_SIMULATION_SIM_PROCESS_H_
#define BATON_TESTS_SIMULATION_SIM_PROCESS_H_

#include <optional>
#include <string>
#include <utility>

#include "absl/time/time.h"
#include "tests/simulation/sim_executor.h"
#include "tests/simulation/sim_world.h"

namespace baton {

class SimNetwork;

// One life of one process: from its start until it exits or is killed. A restart at the same address is
// another object with another instance id. Its threads are those of the real process.
class SimProcess {
 public:
  enum class Thread { kLoop, kTransfer, kControl };

  SimProcess(SimWorld* world, SimNetwork* network, std::string address, std::string instance_id,
             absl::Duration longest_hop)
      : world_(world),
        network_(network),
        loop_(world, longest_hop),
        transfer_(world, longest_hop),
        control_(world, longest_hop),
        address_(std::move(address)),
        instance_id_(std::move(instance_id)) {}
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;
  virtual ~SimProcess() = default;

  const std::string& address() const { return address_; }
  const std::string& instance_id() const { return instance_id_; }
  SimExecutor& thread(Thread which) {
    return which == Thread::kLoop ? loop_ : which == Thread::kTransfer ? transfer_ : control_;
  }

  bool alive() const { return alive_; }
  // Since when nothing of it runs; absent while it does.
  std::optional<absl::Time> stopped_since() const { return stopped_since_; }
  // Since when its loop is stuck while the process answers.
  std::optional<absl::Time> wedged_since() const { return wedged_since_; }

  // Its peers' streams break. With `lose_sent`, so does what is on its way.
  void Kill(bool lose_sent = false);
  void Stop();
  void Continue();
  void Wedge();
  void Unwedge();

 protected:
  SimWorld* const world_;
  SimNetwork* const network_;
  SimExecutor loop_;
  SimExecutor transfer_;
  SimExecutor control_;

 private:
  const std::string address_;
  const std::string instance_id_;
  bool alive_ = true;
  std::optional<absl::Time> stopped_since_;
  std::optional<absl::Time> wedged_since_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_PROCESS_H_
