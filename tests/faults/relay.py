"""A TCP relay that understands HTTP/2 frames, to break one link of a running system at one message.

A Relay listens on a port of its own and forwards every connection to one address. It puts the gRPC messages of each stream together
as they pass, so that a Gate can hold a stream at the first message that fits, while everything else on the connection goes on.
The link can be slowed, cut or left half-open at any time. All relays run on one thread; every public method may be called from
any other.
"""

import asyncio
import os
import struct
import threading
import traceback

PREFACE_BYTES = 24  # what a client sends before its first frame
DATA, HEADERS, RST_STREAM, CONTINUATION = 0, 1, 3, 9
END_STREAM = 1
CHUNK_BYTES = 64 << 10
SLOW_CHUNK_BYTES = 8 << 10


def all_ports(port):
    return True


def no_port(port):
    return False


class Loop:
    """The thread of all relays."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def call(self, function, *args):
        """Runs it on the thread."""
        if threading.current_thread() is self._thread:
            function(*args)
            return

        async def run():
            function(*args)

        asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(10)


class Gate:
    """Holds a stream at the first message that fits, until it is opened.

    `fits(opening, message, from_client)`: `opening` is the first message that the client sent on the message's stream. `then` is
    called, on the relays' thread, at the moment when it fits.
    """

    def __init__(self, relay, fits, then):
        self.relay = relay
        self.fits = fits
        self.then = then
        self.reached = threading.Event()
        self.held = []  # (direction, stream id)

    def open(self):
        self.relay.open_gate(self)


class Direction:
    """One way of one connection: splits bytes into frames, shows messages to the relay, keeps back what a gate holds."""

    def __init__(self, connection, from_client):
        self.connection = connection
        self.from_client = from_client
        self.preface = PREFACE_BYTES if from_client else 0
        self.buffer = b""
        self.partial = {}  # stream id -> bytes of a message that is not complete
        self.kept = {}  # stream id -> frames kept back
        self.queue = []  # frames behind a header block that is kept back: its compression depends on their order
        self.queueing = False

    def feed(self, data):
        """The bytes to forward now."""
        if not self.connection.relay.frames:
            return data
        self.buffer += data
        out = b""
        if self.preface:
            out = self.buffer[: self.preface]
            self.preface -= len(out)
            self.buffer = self.buffer[len(out) :]
        while len(self.buffer) >= 9:
            size = int.from_bytes(self.buffer[:3], "big")
            if len(self.buffer) < 9 + size:
                break
            frame, self.buffer = self.buffer[: 9 + size], self.buffer[9 + size :]
            out += self._frame(frame)
        return out

    def _frame(self, frame):
        kind, flags = frame[3], frame[4]
        stream = int.from_bytes(frame[5:9], "big") & 0x7FFFFFFF
        if self.queueing and kind in (DATA, HEADERS, CONTINUATION, RST_STREAM):
            self.queue.append(frame)
            return b""
        if kind == RST_STREAM:
            self.kept.pop(stream, None)
            return frame
        if stream in self.kept and kind in (DATA, HEADERS):
            self.kept[stream].append(frame)
            self.queueing = kind == HEADERS
            return b""
        if kind != DATA or flags & ~END_STREAM:
            return frame
        return self._data(stream, frame)

    def _data(self, stream, frame):
        before = self.partial.get(stream, b"")
        data = before + frame[9:]
        start = 0
        while len(data) >= start + 5:
            end = start + 5 + int.from_bytes(data[start + 1 : start + 5], "big")
            if len(data) < end:
                break
            gate = self.connection.relay.show(self, stream, data[start + 5 : end])
            if gate is not None:
                gate.held.append((self, stream))
                # What came before this message goes on; a part of it may have gone already.
                passed = max(start - len(before), 0)
                rest = frame[9 + passed :]
                self.partial[stream] = b""
                self.kept[stream] = [self._data_frame(stream, frame[4], rest)]
                gate.then()
                gate.reached.set()
                return self._data_frame(stream, 0, frame[9 : 9 + passed]) if passed else b""
            start = end
        self.partial[stream] = data[start:]
        return frame

    @staticmethod
    def _data_frame(stream, flags, payload):
        return len(payload).to_bytes(3, "big") + bytes([DATA, flags]) + struct.pack(">I", stream) + payload

    def release(self, stream):
        frames = self.kept.pop(stream, [])
        if self.queueing:
            frames += self.queue
            self.queue, self.queueing = [], False
        if frames:
            self.connection.write(self, b"".join(frames))


class Connection:
    def __init__(self, relay, reader, writer):
        self.relay = relay
        self.client = (reader, writer)
        self.server = None
        self.client_port = writer.get_extra_info("peername")[1]
        self.silent = False
        self.openings = {}  # stream id -> the client's first message
        self.ways = {True: Direction(self, True), False: Direction(self, False)}

    async def run(self):
        if self.relay.swallows(self.client_port):
            self.silent = True
        else:
            try:
                self.server = await asyncio.open_connection("127.0.0.1", self.relay.target)
            except OSError:
                self.abort()
                return
            pumps = [asyncio.ensure_future(self._pump(way)) for way in (True, False)]
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            # A silent connection stays open, as one does whose cable was pulled; whoever heals it aborts it.
            if not self.silent:
                self.abort()
            await asyncio.wait(pumps)

    async def _pump(self, from_client):
        reader = self.client[0] if from_client else self.server[0]
        way = self.ways[from_client]
        try:
            while True:
                data = await reader.read(SLOW_CHUNK_BYTES if self.relay.delay else CHUNK_BYTES)
                if not data:
                    return
                if self.relay.delay:
                    await asyncio.sleep(self.relay.delay)
                if not self.silent:
                    self.write(way, way.feed(data))
                    await (self.server if from_client else self.client)[1].drain()
        except (OSError, asyncio.CancelledError):
            return
        except Exception:  # pylint: disable=broad-except
            # A relay that loses connections by its own fault proves nothing about the peers.
            traceback.print_exc()
            os._exit(70)

    def write(self, way, data):
        end = self.server if way.from_client else self.client
        if data and not self.silent and end is not None:
            end[1].write(data)

    def abort(self):
        for end in (self.client, self.server):
            if end is not None:
                end[1].transport.abort()


class Relay:
    def __init__(self, loop, frames=True):
        self.frames = frames  # false: bytes are forwarded unseen, and there are no gates
        self.target = 0  # port
        self.delay = 0.0  # seconds, of every few KiB
        self.watch = lambda opening, message, from_client: None  # is shown every message
        self._loop = loop
        self._gates = []
        self._connections = set()
        self.swallows = no_port  # new connections from these ports are accepted, and hear nothing
        server = loop.run(asyncio.start_server(self._accept, "127.0.0.1", 0, limit=CHUNK_BYTES))
        self.port = server.sockets[0].getsockname()[1]
        self.address = "127.0.0.1:%d" % self.port

    async def _accept(self, reader, writer):
        connection = Connection(self, reader, writer)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            if not connection.silent:
                self._connections.discard(connection)

    def show(self, way, stream, message):
        opening = way.connection.openings.get(stream, b"")
        if way.from_client and not opening:
            opening = way.connection.openings[stream] = message
        self.watch(opening, message, way.from_client)
        for gate in self._gates:
            if not gate.reached.is_set() and gate.fits(opening, message, way.from_client):
                return gate
        return None

    def close_gate(self, fits, then=lambda: None):
        gate = Gate(self, fits, then)
        self._loop.call(self._gates.append, gate)
        return gate

    def open_gate(self, gate):
        def run():
            self._gates.remove(gate)
            for way, stream in gate.held:
                way.release(stream)

        self._loop.call(run)

    def slow(self, seconds):
        self.delay = seconds

    def cut(self, of=all_ports):
        """Resets the connections for whose client port `of` is true; the next ones get through."""

        def run():
            for connection in list(self._connections):
                if of(connection.client_port):
                    connection.abort()

        self._loop.call(run)

    def silence(self, of=all_ports):
        """Swallows every byte of the connections for whose client port `of` is true, and of the next ones."""

        def run():
            self.swallows = of
            for connection in self._connections:
                connection.silent = connection.silent or of(connection.client_port)

        self._loop.call(run)

    def heal(self):
        """Resets what was silent and takes connections again."""

        def run():
            self.swallows = no_port
            for connection in list(self._connections):
                if connection.silent:
                    connection.abort()
                    self._connections.discard(connection)

        self._loop.call(run)
