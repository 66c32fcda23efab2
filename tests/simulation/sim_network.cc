#include "tests/simulation/sim_network.h"

#include <algorithm>

#include "common/str_cat.h"

namespace baton {
namespace {

// How far a hostile link may move a message behind its place.
constexpr absl::Duration kHostileDelay = absl::Milliseconds(5);
// When an open arrives once more, and how long that stream then lives.
constexpr absl::Duration kAgainAfter = absl::Milliseconds(20);
constexpr absl::Duration kAgainLife = absl::Milliseconds(200);

}  // namespace

void SimStream::Send(Side from, const char* what, std::function<void()> deliver) {
  if (!ends_[from].open) return;
  const Side to = Other(from);
  SimWorld& world = *network_->world_;
  const LinkHostility& hostility = network_->link(ends_[from].host, ends_[to].host).hostility;
  absl::Time arrival = std::max(ends_[to].last_arrival, network_->Arrival(ends_[from].host, ends_[to].host));
  const auto arrive = [self = shared_from_this(), to, what, deliver = std::move(deliver)] {
    self->Arrive(to, what, deliver);
  };
  if (world.Chance(hostility.duplicate)) {
    world.At(arrival + world.Between(absl::ZeroDuration(), kHostileDelay), arrive);
  }
  if (world.Chance(hostility.swap)) {
    arrival += world.Between(absl::ZeroDuration(), kHostileDelay);
  } else {
    ends_[to].last_arrival = arrival;
  }
  world.At(arrival, arrive);
}

void SimStream::Arrive(Side to, const char* what, const std::function<void()>& deliver) {
  End& end = ends_[to];
  if (!end.open || end.process == nullptr) return;
  if (network_->world_->tracing()) {
    network_->world_->Trace(StrCat(ends_[Other(to)].host, " -> ", end.host, "  ", name_, ": ", what));
  }
  end.process->thread(end.thread).Post([self = shared_from_this(), to, deliver] {
    if (self->ends_[to].listening) deliver();
  });
}

void SimStream::CloseEnd(Side side, const absl::Status& status) {
  End& end = ends_[side];
  if (!std::exchange(end.open, false) || end.process == nullptr) return;
  if (network_->world_->tracing()) {
    network_->world_->Trace(StrCat(end.host, " hears the end of ", name_, ": ", status.ToString()));
  }
  end.process->thread(end.thread).Post([self = shared_from_this(), side, status] {
    End& closed = self->ends_[side];
    if (!std::exchange(closed.listening, false)) return;
    if (closed.on_closed) closed.on_closed(status);
  });
}

void SimStream::Finish(const absl::Status& status) {
  ends_[kServer].listening = false;
  if (!std::exchange(ends_[kServer].open, false)) return;
  End& client = ends_[kClient];
  client.last_arrival = std::max(client.last_arrival, network_->Arrival(ends_[kServer].host, client.host));
  network_->world_->At(client.last_arrival,
                       [self = shared_from_this(), status] { self->CloseEnd(kClient, status); });
}

void SimStream::Cancel() {
  ends_[kClient].listening = false;
  if (!std::exchange(ends_[kClient].open, false)) return;
  const End& server = ends_[kServer];
  absl::Time arrival = network_->Arrival(ends_[kClient].host, server.host);
  if (network_->world_->Chance(0.5)) arrival = std::max(arrival, server.last_arrival);
  network_->world_->At(arrival, [self = shared_from_this()] {
    self->CloseEnd(kServer, absl::CancelledError("the caller cancelled"));
  });
}

std::pair<std::string, std::string> SimNetwork::Key(const std::string& a, const std::string& b) {
  return a < b ? std::make_pair(a, b) : std::make_pair(b, a);
}

SimNetwork::Direction& SimNetwork::direction(const std::string& from, const std::string& to) {
  return link(from, to).directions[from < to ? 0 : 1];
}

SimProcess* SimNetwork::At(const std::string& address) const {
  const auto it = listening_.find(address);
  return it == listening_.end() || !it->second->alive() ? nullptr : it->second;
}

absl::Time SimNetwork::Arrival(const std::string& from, const std::string& to) {
  const Link& on = link(from, to);
  const LinkDelays delays = on.delays.value_or(options_.delays);
  absl::Duration delay = world_->Between(delays.min, delays.max);
  if (world_->Chance(delays.tail_chance)) {
    // A Pareto distribution, cut off.
    delay = std::min(delays.tail_max, delays.max / (1e-6 + static_cast<double>(world_->Below(1000)) / 1000));
  }
  if (world_->now() < on.slow_until) delay += world_->Between(absl::ZeroDuration(), on.slow_by);
  return std::max(world_->now(), direction(from, to).blocked_until) + delay;
}

std::shared_ptr<SimStream> SimNetwork::Open(SimProcess& client, SimProcess::Thread client_thread,
                                            const std::string& address, SimProcess::Thread server_thread,
                                            const std::string& name, absl::Time deadline, Accept accept,
                                            SimStream::OnClosed on_closed) {
  std::shared_ptr<SimStream> stream(new SimStream(this, name));
  SimStream::End& end = stream->ends_[SimStream::kClient];
  end.host = client.address();
  end.process = &client;
  end.thread = client_thread;
  end.on_closed = std::move(on_closed);
  SimStream::End& server = stream->ends_[SimStream::kServer];
  server.host = address;
  server.thread = server_thread;
  server.last_arrival = Arrival(client.address(), address);
  stream->opened_at_ = world_->now();
  streams_.push_back(stream);
  if (int& again = link(client.address(), address).duplicate_opens; again > 0) {
    --again;
    OpenAgain(*stream, address, server_thread, accept);
  }
  world_->At(server.last_arrival,
             [this, stream, address, accept = std::move(accept)] { Reach(stream, address, accept); });
  if (deadline != absl::InfiniteFuture()) {
    world_->At(deadline, [this, stream] {
      if (!stream->open(SimStream::kClient)) return;
      CloseBoth(stream, SimStream::kClient, absl::DeadlineExceededError("the call's deadline"));
    });
  }
  Watch(stream, SimStream::kClient);
  return stream;
}

void SimNetwork::Reach(const std::shared_ptr<SimStream>& stream, const std::string& address,
                       const Accept& accept) {
  SimStream::End& end = stream->ends_[SimStream::kServer];
  if (!end.open) return;
  SimProcess* const server = At(address);
  if (server == nullptr) {
    end.open = false;
    world_->At(Arrival(address, stream->host(SimStream::kClient)), [stream] {
      stream->CloseEnd(SimStream::kClient, absl::UnavailableError("connection refused"));
    });
    return;
  }
  if (world_->tracing()) {
    world_->Trace(StrCat(stream->host(SimStream::kClient), " -> ", address, "  ", stream->name_, ": open"));
  }
  end.process = server;
  server->thread(end.thread).Post([stream, server, accept] {
    if (stream->ends_[SimStream::kServer].listening) accept(*server, stream);
  });
  Watch(stream, SimStream::kServer);
}

void SimNetwork::OpenAgain(const SimStream& original, const std::string& address,
                           SimProcess::Thread server_thread, const Accept& accept) {
  std::shared_ptr<SimStream> stream(new SimStream(this, StrCat("again ", original.name_)));
  stream->opened_at_ = world_->now();
  stream->ends_[SimStream::kClient].host = original.host(SimStream::kClient);
  SimStream::End& server = stream->ends_[SimStream::kServer];
  server.host = address;
  server.thread = server_thread;
  streams_.push_back(stream);
  const absl::Time arrival =
      original.ends_[SimStream::kServer].last_arrival + world_->Between(absl::ZeroDuration(), kAgainAfter);
  server.last_arrival = arrival;
  world_->At(arrival, [this, stream, address, accept] { Reach(stream, address, accept); });
  world_->At(arrival + world_->Between(absl::ZeroDuration(), kAgainLife), [stream] { stream->Cancel(); });
}

absl::Time SimNetwork::BlockedSince(const std::string& from, const std::string& to) const {
  const auto it = links_.find(Key(from, to));
  if (it == links_.end()) return absl::InfiniteFuture();
  const Direction& direction = it->second.directions[from < to ? 0 : 1];
  return world_->now() < direction.blocked_until ? direction.blocked_since : absl::InfiniteFuture();
}

bool SimNetwork::Unreachable(const SimStream& stream, absl::Time since) const {
  const std::string& a = stream.host(SimStream::kClient);
  const std::string& b = stream.host(SimStream::kServer);
  if (BlockedSince(a, b) <= since || BlockedSince(b, a) <= since) return true;
  for (const SimStream::End& end : stream.ends_) {
    if (end.process != nullptr && end.process->stopped_since() && *end.process->stopped_since() <= since) {
      return true;
    }
  }
  return false;
}

void SimNetwork::Watch(const std::shared_ptr<SimStream>& stream, SimStream::Side side) {
  const absl::Time since = world_->now();
  if (!Unreachable(*stream, since)) return;
  world_->After(world_->Between(options_.keepalive_min, options_.keepalive_max), [this, stream, side, since] {
    const SimProcess* const own = stream->ends_[side].process;
    if (!stream->open(side) || (own != nullptr && own->stopped_since())) return;
    if (!Unreachable(*stream, since)) return;
    CloseBoth(stream, side, absl::UnavailableError("the peer does not answer pings"));
  });
}

void SimNetwork::CloseBoth(const std::shared_ptr<SimStream>& stream, SimStream::Side first,
                           const absl::Status& status) {
  stream->CloseEnd(first, status);
  const SimStream::Side other = SimStream::Other(first);
  world_->At(Arrival(stream->host(first), stream->host(other)), [stream, other] {
    stream->CloseEnd(other, absl::UnavailableError("the peer has closed the stream"));
  });
}

std::vector<std::shared_ptr<SimStream>> SimNetwork::StreamsBetween(const std::string& a,
                                                                   const std::string& b) {
  std::vector<std::shared_ptr<SimStream>> found;
  std::erase_if(streams_, [&](const std::weak_ptr<SimStream>& weak) {
    const std::shared_ptr<SimStream> stream = weak.lock();
    if (stream == nullptr) return true;
    const std::string& client = stream->host(SimStream::kClient);
    const std::string& server = stream->host(SimStream::kServer);
    if ((client == a && server == b) || (client == b && server == a)) found.push_back(stream);
    return false;
  });
  return found;
}

void SimNetwork::Cut(const std::string& a, const std::string& b) {
  for (const std::shared_ptr<SimStream>& stream : StreamsBetween(a, b)) {
    for (const SimStream::Side side : {SimStream::kClient, SimStream::kServer}) {
      world_->After(world_->Between(absl::ZeroDuration(), options_.delays.max),
                    [stream, side] { stream->CloseEnd(side, absl::UnavailableError("connection reset")); });
    }
  }
}

void SimNetwork::Block(const std::string& from, const std::string& to, absl::Duration time) {
  Direction& blocked = direction(from, to);
  if (world_->now() >= blocked.blocked_until) blocked.blocked_since = world_->now();
  blocked.blocked_until = std::max(blocked.blocked_until, world_->now() + time);
  for (const std::shared_ptr<SimStream>& stream : StreamsBetween(from, to)) {
    Watch(stream, SimStream::kClient);
    Watch(stream, SimStream::kServer);
  }
}

void SimNetwork::SetDelays(const std::string& a, const std::string& b, const LinkDelays& delays) {
  link(a, b).delays = delays;
}

void SimNetwork::Slow(const std::string& a, const std::string& b, absl::Duration extra, absl::Duration time) {
  link(a, b).slow_by = extra;
  link(a, b).slow_until = world_->now() + time;
}

void SimNetwork::SetHostility(const std::string& a, const std::string& b, const LinkHostility& hostility) {
  link(a, b).hostility = hostility;
}

void SimNetwork::DuplicateOpens(const std::string& a, const std::string& b, int count) {
  link(a, b).duplicate_opens = count;
}

size_t SimNetwork::open_streams() const {
  return static_cast<size_t>(
      std::count_if(streams_.begin(), streams_.end(), [](const std::weak_ptr<SimStream>& weak) {
        const std::shared_ptr<SimStream> stream = weak.lock();
        return stream != nullptr && (stream->open(SimStream::kClient) || stream->open(SimStream::kServer));
      }));
}

void SimNetwork::OnProcessGone(const SimProcess& process, bool lose_sent) {
  for (const std::weak_ptr<SimStream>& weak : streams_) {
    const std::shared_ptr<SimStream> stream = weak.lock();
    if (stream == nullptr) continue;
    for (const SimStream::Side side : {SimStream::kClient, SimStream::kServer}) {
      SimStream::End& end = stream->ends_[side];
      if (end.process != &process) continue;
      end.open = end.listening = false;
      const SimStream::Side other = SimStream::Other(side);
      absl::Time arrival = Arrival(stream->host(side), stream->host(other));
      if (!lose_sent) arrival = std::max(arrival, stream->ends_[other].last_arrival);
      world_->At(arrival,
                 [stream, other] { stream->CloseEnd(other, absl::UnavailableError("connection reset")); });
    }
  }
}

void SimNetwork::WatchStreamsOf(const std::string& address) {
  for (const std::weak_ptr<SimStream>& weak : streams_) {
    const std::shared_ptr<SimStream> stream = weak.lock();
    if (stream == nullptr) continue;
    for (const SimStream::Side side : {SimStream::kClient, SimStream::kServer}) {
      if (stream->host(side) == address) Watch(stream, SimStream::Other(side));
    }
  }
}

}  // namespace baton
