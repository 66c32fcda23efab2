"""Where a request is, as the relays between the processes see it, and how it is held there."""

import collections
import time

import stubs

Attempt = collections.namedtuple("Attempt", "number transfer_id prefill_instance decode time")


class Attempts:
    """Every attempt that the router has made, as the links to the decode services show it."""

    def __init__(self, cluster, prefix):
        self._prefix = prefix  # of the ids of this cluster's requests
        self._attempts = collections.defaultdict(list)
        for i, link in enumerate(cluster.to_decode):
            link.watch = lambda opening, message, from_client, i=i: self._see(opening is message, message, i)

    def _see(self, first, message, decode):
        if not first or not message:
            return
        try:
            request = stubs.decode_pb2.DecodeRequest.FromString(message)
        except stubs.DecodeError:
            return  # of another method: a relay does not see which
        if request.attempt.transfer_id:
            # The command-line client lets the router mint its ids.
            name = request.attempt.request_id
            self._attempts[name if name.startswith(self._prefix) else ""].append(
                Attempt(
                    request.attempt.number,
                    request.attempt.transfer_id,
                    request.handoff.prefill_instance_id,
                    decode,
                    time.monotonic(),
                )
            )

    def forget(self):
        self._attempts.clear()

    def of(self, request_id):
        return self._attempts[request_id]

    def owns(self, request_id, opening):
        """Whether a leg or a handoff that began with this message is the request's."""
        return any(attempt.transfer_id in opening for attempt in self._attempts[request_id])


class Phases:
    """Each method closes the gates that hold a request in one phase, and returns them.

    The phase is reached when any of them is; `then` is called at that moment, on the relays' thread.
    """

    def __init__(self, cluster, attempts):
        self.cluster = cluster
        self.attempts = attempts

    def _close(self, links, request_id, from_client, fits, then):
        """A gate in each link, for messages of this request's streams."""

        def fits_all(opening, message, is_from_client):
            return is_from_client == from_client and self.attempts.owns(request_id, opening) and fits(message)

        return [link.close_gate(fits_all, then) for link in links]

    def _decode(self, request_id, then, fits):
        def event_fits(message):
            return fits(stubs.decode_pb2.DecodeEvent.FromString(message))

        return self._close(self.cluster.to_decode, request_id, False, event_fits, then)

    def _land(self, request_id, then, fits):
        def request_fits(message):
            return fits(stubs.kv_transfer_pb2.LandRequest.FromString(message))

        return self._close(self.cluster.to_landing, request_id, True, request_fits, then)

    def reserving(self, request_id, then):
        return self._decode(request_id, then, lambda event: event.HasField("reserved"))

    def prefilling(self, request_id, then):
        def is_first_token(message):
            return stubs.prefill_pb2.PrefillEvent.FromString(message).HasField("first_token")

        opened = self._land(request_id, then, lambda message: message.HasField("open"))
        return opened + self._close(self.cluster.to_prefill, request_id, False, is_first_token, then)

    def first_layers(self, request_id, then):
        return self._land(request_id, then, lambda message: message.HasField("data"))

    def mid_transfer(self, request_id, then):
        seen = collections.Counter()

        def fits(message):
            seen["data"] += message.HasField("data")
            return seen["data"] == 4

        return self._land(request_id, then, fits)

    def commit(self, request_id, then):
        """Holds the last message of the handoff: the commit, or what it still waits for."""
        seen = collections.Counter()

        def fits(message):
            seen["bytes"] += len(message.data.bytes)
            if message.HasField("commit"):
                seen["due"] = message.commit.kv_bytes
            return "due" in seen and seen["bytes"] >= seen["due"]

        return self._land(request_id, then, fits)

    def first_step(self, request_id, then):
        return self._decode(request_id, then, lambda event: event.HasField("tokens"))

    def decoding(self, request_id, then):
        return self._decode(request_id, then, lambda event: event.HasField("tokens") and event.tokens.index >= 5)


PHASES = {
    "queued": None,  # held in the router, by requests ahead of it
    "reserving": Phases.reserving,
    "prefilling": Phases.prefilling,
    "first-layers": Phases.first_layers,
    "mid-transfer": Phases.mid_transfer,
    "commit": Phases.commit,
    "first-step": Phases.first_step,
    "decoding": Phases.decoding,
}
