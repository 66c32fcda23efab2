#ifndef BATON_TESTS_SIMULATION_SIM_NETWORK_H_
#define BATON_TESTS_SIMULATION_SIM_NETWORK_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/simulation/sim_process.h"
#include "tests/simulation/sim_world.h"

namespace baton {

// How long a message takes on a link: uniform, but for a few that take far longer.
struct LinkDelays {
  absl::Duration min = absl::Microseconds(100);
  absl::Duration max = absl::Microseconds(100);
  double tail_chance = 0;
  absl::Duration tail_max;
};

// What a link does to the messages of a stream although its transport never would: each is delivered twice,
// or after the one behind it, with these chances.
struct LinkHostility {
  double duplicate = 0;
  double swap = 0;
};

// One call between two processes, as gRPC shows it to its ends. What one end sends arrives at the other in
// order, once, while both are open; each end hears of the stream's end at most once, and not when it ended
// the stream itself. Events run on a thread of the process that they reach.
class SimStream : public std::enable_shared_from_this<SimStream> {
 public:
  enum Side { kClient, kServer };
  using OnClosed = std::function<void(const absl::Status&)>;

  // `what` names the message in a trace; `deliver` runs at the other end and may run more than once.
  void Send(Side from, const char* what, std::function<void()> deliver);
  // The server's last word, behind all that it has sent.
  void Finish(const absl::Status& status);
  // The client has no more use for it. The server may hear of it before what the client had sent.
  void Cancel();
  // What the server does when the client has gone.
  void set_on_closed_at_server(OnClosed on_closed) { ends_[kServer].on_closed = std::move(on_closed); }

  bool open(Side side) const { return ends_[side].open; }
  const std::string& host(Side side) const { return ends_[side].host; }
  // Null before the open has arrived.
  SimProcess* server() const { return ends_[kServer].process; }
  absl::Time opened_at() const { return opened_at_; }

 private:
  friend class SimNetwork;
  struct End {
    std::string host;
    SimProcess* process = nullptr;  // null: nobody listens there, what arrives is dropped
    SimProcess::Thread thread = SimProcess::Thread::kLoop;
    bool open = true;         // messages still arrive
    bool listening = true;    // its owner has not ended the stream
    absl::Time last_arrival;  // of what travels to it
    OnClosed on_closed;
  };

  SimStream(SimNetwork* network, std::string name) : network_(network), name_(std::move(name)) {}
  static Side Other(Side side) { return side == kClient ? kServer : kClient; }
  void Arrive(Side to, const char* what, const std::function<void()>& deliver);
  // The end hears that the stream is over, after what has arrived before.
  void CloseEnd(Side side, const absl::Status& status);

  SimNetwork* const network_;
  const std::string name_;
  absl::Time opened_at_;
  End ends_[2];
};

// The network between all processes: addresses, links and their faults. A link is a pair of addresses.
// Connections are kept alive by pings as the real ones are: an end whose peer cannot answer closes its
// streams within 3 s.
class SimNetwork {
 public:
  struct Options {
    LinkDelays delays;
    // When an end gives up on a silent peer: drawn for each.
    absl::Duration keepalive_min = absl::Milliseconds(2500);
    absl::Duration keepalive_max = absl::Milliseconds(2900);
  };
  using Accept = std::function<void(SimProcess& server, const std::shared_ptr<SimStream>& stream)>;

  SimNetwork(SimWorld* world, const Options& options) : world_(world), options_(options) {}

  // Who is reached at an address from now on.
  void Listen(SimProcess* process) { listening_[process->address()] = process; }
  SimProcess* At(const std::string& address) const;

  // A call to whoever listens at `address` when it arrives there. `on_closed` runs at the client unless it
  // cancels first; `deadline` is the client's.
  std::shared_ptr<SimStream> Open(SimProcess& client, SimProcess::Thread client_thread,
                                  const std::string& address, SimProcess::Thread server_thread,
                                  const std::string& name, absl::Time deadline, Accept accept,
                                  SimStream::OnClosed on_closed);

  // Of one link, instead of those of the options.
  void SetDelays(const std::string& a, const std::string& b, const LinkDelays& delays);
  // Faults of one link. Those with a time end by themselves.
  void Cut(const std::string& a, const std::string& b);  // every stream breaks, at both ends
  void Block(const std::string& from, const std::string& to, absl::Duration time);  // one direction
  void Slow(const std::string& a, const std::string& b, absl::Duration extra, absl::Duration time);
  void SetHostility(const std::string& a, const std::string& b, const LinkHostility& hostility);
  // The next `count` opens on the link arrive once more, as streams of their own, some time later.
  void DuplicateOpens(const std::string& a, const std::string& b, int count);

  // Since when nothing passes from one address to the other; InfiniteFuture while it does.
  absl::Time BlockedSince(const std::string& from, const std::string& to) const;
  size_t open_streams() const;

  // For SimProcess.
  void OnProcessGone(const SimProcess& process, bool lose_sent);
  void WatchStreamsOf(const std::string& address);

 private:
  friend class SimStream;
  struct Direction {
    absl::Time blocked_since;
    absl::Time blocked_until;
  };
  struct Link {
    Direction directions[2];  // by the order of the addresses
    std::optional<LinkDelays> delays;
    absl::Time slow_until;
    absl::Duration slow_by;
    LinkHostility hostility;
    int duplicate_opens = 0;
  };
  static std::pair<std::string, std::string> Key(const std::string& a, const std::string& b);
  Link& link(const std::string& a, const std::string& b) { return links_[Key(a, b)]; }
  Direction& direction(const std::string& from, const std::string& to);

  // When a message sent now arrives.
  absl::Time Arrival(const std::string& from, const std::string& to);
  bool Unreachable(const SimStream& stream, absl::Time since) const;
  // Closes the end in time if its peer stays unreachable.
  void Watch(const std::shared_ptr<SimStream>& stream, SimStream::Side side);
  void CloseBoth(const std::shared_ptr<SimStream>& stream, SimStream::Side first, const absl::Status& status);
  void Reach(const std::shared_ptr<SimStream>& stream, const std::string& address, const Accept& accept);
  // An open that arrives once more, from nobody who would listen.
  void OpenAgain(const SimStream& original, const std::string& address, SimProcess::Thread server_thread,
                 const Accept& accept);
  std::vector<std::shared_ptr<SimStream>> StreamsBetween(const std::string& a, const std::string& b);

  SimWorld* const world_;
  const Options options_;
  std::map<std::string, SimProcess*> listening_;
  std::map<std::pair<std::string, std::string>, Link> links_;
  std::vector<std::weak_ptr<SimStream>> streams_;
};

}  // namespace baton

#endif  // BATON_TESTS_SIMULATION_SIM_NETWORK_H_
