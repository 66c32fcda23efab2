"""Peers and clients that mean harm: crafted handoffs to a real decode service, and HTTP/2 misuse of a real router.

After each of them everything that it held is free again and the next request is served.
"""

import ctypes
import os
import queue
import shutil
import socket
import struct
import sys
import tempfile
import time
import unittest

import grpc

import stubs
from cluster import Call, Cluster, until

BINARIES = [os.path.abspath(path) for path in sys.argv[1:6]]
PROMPT = list(range(3, 103))
TOKEN_BYTES = 4 * 2 * 2 * 16 * 2  # layers x (K, V) x heads x head_dim x f16, of the tiny model
ME = "00000000-0000-4000-8000-000000000001"

xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
xxh3.restype = ctypes.c_uint64
xxh3.argtypes = [ctypes.c_char_p, ctypes.c_size_t]

Land = stubs.kv_transfer_pb2.LandRequest
Decode = stubs.decode_pb2.DecodeRequest


def piece(number, layers=(0, 4), tokens=(0, len(PROMPT)), group=0):
    return dict(
        id=number,
        group=group,
        layer_begin=layers[0],
        layer_end=layers[1],
        token_begin=tokens[0],
        token_end=tokens[1],
    )


def offer(*pieces):
    return Land(offer=dict(pieces=pieces))


def data(number, size=len(PROMPT) * TOKEN_BYTES, offset=0, checksum=True, wrong=0):
    content = bytes(size)
    message = Land(data=dict(piece_id=number, offset=offset, bytes=content))
    if checksum:
        message.data.checksum = xxh3(content, size) ^ wrong
    return message


def commit(size=len(PROMPT) * TOKEN_BYTES, token=5):
    return Land(commit=dict(first_token=dict(id=token), kv_bytes=size))


class Leg:
    """A decode leg as a router opens it, for a handoff from ME."""

    def __init__(self, process, number):
        request = Decode()
        request.attempt.request_id = "hostile-%d" % number
        self.transfer_id = os.urandom(16)
        request.attempt.transfer_id = self.transfer_id
        request.request.prompt.extend(PROMPT)
        request.request.sampling.temperature = 0
        request.request.sampling.seed = 1
        request.request.max_tokens = 4
        request.handoff.prefill_instance_id = ME
        self.events = process.stub(stubs.decode_pb2_grpc.DecodeWorkerStub).Decode(request, timeout=20)
        for event in self.events:
            if event.HasField("reserved"):
                self.landing = event.reserved.landing
                break

    def end(self):
        """The code with which it ends by itself, and its tokens."""
        tokens = []
        try:
            for event in self.events:
                tokens += [token.id for token in event.tokens.tokens]
        except grpc.RpcError as error:
            return error.code().name, tokens
        return "OK", tokens


class Stream:
    """One Land."""

    def __init__(self, process, *messages):
        self._queue = queue.SimpleQueue()
        self.send(*messages)
        self.replies = process.stub(stubs.kv_transfer_pb2_grpc.KvTransferStub).Land(iter(self._queue.get, None), timeout=20)

    def send(self, *messages):
        for message in messages:
            self._queue.put(message)

    def read(self, field):
        """The next reply, which must be this."""
        reply = next(self.replies)
        assert reply.WhichOneof("message") == field, reply
        return reply

    def end(self):
        """The code with which it ends."""
        try:
            for _ in self.replies:
                pass
        except grpc.RpcError as error:
            return error.code().name
        finally:
            self._queue.put(None)
        return "OK"


class HostilePeerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.cluster = Cluster(BINARIES[1:], cls.folder, prefill=1, decode=1)
        cls.decode = cls.cluster.decode[0]
        info = cls.decode.control().GetServerInfo(stubs.control_pb2.GetServerInfoRequest())
        cls.layout = info.model.fingerprint.split("-", 1)[1]
        cls.legs = 0

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        shutil.rmtree(cls.folder)

    def tearDown(self):
        self.cluster.await_idle(2)
        request = stubs.inference_pb2.GenerateRequest(prompt="hello", stopping=dict(max_tokens=2))
        call = Call(self.cluster.router.inference(), request).finish(10)
        self.assertEqual(call.code.name, "OK", call.text)

    def leg(self):
        type(self).legs += 1
        return Leg(self.decode, self.legs)

    def open(self, leg, **changes):
        fields = dict(
            protocol_version=leg.landing.protocol_version,
            transfer_id=leg.transfer_id,
            ticket=leg.landing.ticket,
            sender_instance_id=ME,
            layout_id=self.layout,
            block_tokens=16,
            transport="grpc",
        )
        fields.update(changes)
        return Land(open=fields)

    def hand_off(self, leg):
        """An orderly handoff, to the end of the leg."""
        stream = Stream(self.decode, self.open(leg), offer(piece(0)))
        stream.read("opened")
        stream.read("take")
        stream.send(data(0), commit())
        stream.read("committed")
        self.assertEqual(stream.end(), "OK")
        code, tokens = leg.end()
        self.assertEqual((code, len(tokens), tokens[0]), ("OK", 4, 5))

    def test_an_orderly_handoff(self):
        self.hand_off(self.leg())

    def test_a_stream_without_the_right_to_it_leaves_the_landing_alone(self):
        leg = self.leg()
        strangers = {
            "wrong ticket": (self.open(leg, ticket=os.urandom(16)), "PERMISSION_DENIED"),
            "short ticket": (self.open(leg, ticket=leg.landing.ticket[:8]), "PERMISSION_DENIED"),
            "no ticket": (self.open(leg, ticket=b""), "PERMISSION_DENIED"),
            "another sender": (self.open(leg, sender_instance_id=ME[:-1] + "2"), "PERMISSION_DENIED"),
            "unknown transfer": (self.open(leg, transfer_id=os.urandom(16)), "NOT_FOUND"),
            "half a transfer id": (self.open(leg, transfer_id=leg.transfer_id[:8]), "INVALID_ARGUMENT"),
            "long transfer id": (self.open(leg, transfer_id=leg.transfer_id * 1000), "INVALID_ARGUMENT"),
            "offer first": (offer(piece(0)), "INVALID_ARGUMENT"),
            "data first": (data(0), "INVALID_ARGUMENT"),
            "commit first": (commit(), "INVALID_ARGUMENT"),
            "nothing in it": (Land(), "INVALID_ARGUMENT"),
        }
        for name, (message, code) in strangers.items():
            with self.subTest(name):
                self.assertEqual(Stream(self.decode, message, commit()).end(), code)
        with self.subTest("another attempt's ticket"):
            other = self.leg()
            self.assertEqual(Stream(self.decode, self.open(leg, ticket=other.landing.ticket)).end(), "PERMISSION_DENIED")
            other.events.cancel()
        self.hand_off(leg)

    def test_a_handoff_that_breaks_the_protocol_ends_its_own_leg_alone(self):
        size = len(PROMPT) * TOKEN_BYTES
        begun = [offer(piece(0)), data(0)]
        end32 = (1 << 32) - 1
        cases = {
            "layers outside": ([offer(piece(0, layers=(0, 5)))], "INVALID_ARGUMENT"),
            "layers that overflow": ([offer(piece(0, layers=(end32, 1)))], "INVALID_ARGUMENT"),
            "no layers": ([offer(piece(0, layers=(2, 2)))], "INVALID_ARGUMENT"),
            "tokens outside": ([offer(piece(0, tokens=(0, 101)))], "INVALID_ARGUMENT"),
            "tokens that overflow": ([offer(piece(0, tokens=(0, end32)))], "INVALID_ARGUMENT"),
            "tokens backwards": ([offer(piece(0, tokens=(50, 10)))], "INVALID_ARGUMENT"),
            "another group": ([offer(piece(0, group=1))], "INVALID_ARGUMENT"),
            "offered twice": ([offer(piece(0), piece(1))], "INVALID_ARGUMENT"),
            "overlapping": ([offer(piece(0, tokens=(0, 60)), piece(1, tokens=(59, 100)))], "INVALID_ARGUMENT"),
            "ids not ascending": ([offer(piece(1, tokens=(0, 50)), piece(1, tokens=(50, 100)))], "INVALID_ARGUMENT"),
            "data not offered": ([data(7)], "INVALID_ARGUMENT"),
            "data with a gap": ([offer(piece(0)), data(0, offset=64, size=size - 64)], "INVALID_ARGUMENT"),
            "data past its end": ([offer(piece(0)), data(0, size=size + 1)], "INVALID_ARGUMENT"),
            "an offset that overflows": ([offer(piece(0)), data(0, offset=(1 << 64) - 1)], "INVALID_ARGUMENT"),
            "data twice": ([*begun, data(0)], "INVALID_ARGUMENT"),
            "no checksum": ([offer(piece(0)), data(0, checksum=False)], "INVALID_ARGUMENT"),
            "checksum too early": ([offer(piece(0)), data(0, size=64)], "INVALID_ARGUMENT"),
            "wrong checksum": ([offer(piece(0)), data(0, wrong=1)], "DATA_LOSS"),
            "opened twice": ([self.open(self.leg())], "INVALID_ARGUMENT"),
            "commit before the offer": ([commit()], "INVALID_ARGUMENT"),
            "commit of another size": ([*begun, commit(size=size - 1)], "INVALID_ARGUMENT"),
            "commit of no number": ([*begun, commit(size=float("nan"))], "INVALID_ARGUMENT"),
            "commit twice": ([offer(piece(0)), commit(), commit()], "INVALID_ARGUMENT"),
            "offer after the commit": ([offer(piece(0)), commit(), offer(piece(1))], "INVALID_ARGUMENT"),
            "nothing in it": ([Land()], "INVALID_ARGUMENT"),
        }
        for name, (messages, code) in cases.items():
            with self.subTest(name):
                leg = self.leg()
                stream = Stream(self.decode, self.open(leg))
                stream.read("opened")
                for message in messages:
                    # Data may follow its take only; all else is sent at once.
                    if message.HasField("data") and messages[0].HasField("offer") and message is messages[1]:
                        stream.read("take")
                    stream.send(message)
                self.assertEqual(stream.end(), code)
                self.assertNotEqual(leg.end()[0], "OK")
                self.hand_off(self.leg())

    def test_opens_that_do_not_fit(self):
        cases = {
            "another layout": (dict(layout_id=self.layout + "x"), "FAILED_PRECONDITION"),
            "a future version": (dict(protocol_version=(1 << 32) - 1), "FAILED_PRECONDITION"),
            "no block size": (dict(block_tokens=0), "INVALID_ARGUMENT"),
            "an odd block size": (dict(block_tokens=17), "INVALID_ARGUMENT"),
            "another transport": (dict(transport="inproc"), None),
        }
        for name, (changes, code) in cases.items():
            with self.subTest(name):
                leg = self.leg()
                ended = Stream(self.decode, self.open(leg, **changes)).end()
                self.assertNotIn(ended, ("OK", "INTERNAL", "UNKNOWN"))
                if code:
                    self.assertEqual(ended, code)
                self.assertNotEqual(leg.end()[0], "OK")

    def test_a_ticket_is_good_once_and_no_longer_than_its_leg(self):
        leg = self.leg()
        self.hand_off(leg)
        self.assertIn(Stream(self.decode, self.open(leg)).end(), ("NOT_FOUND", "PERMISSION_DENIED"))
        leg = self.leg()
        first = Stream(self.decode, self.open(leg))
        first.read("opened")
        self.assertEqual(Stream(self.decode, self.open(leg)).end(), "PERMISSION_DENIED")
        leg.events.cancel()
        self.assertEqual(first.end(), "CANCELLED")
        self.assertEqual(Stream(self.decode, self.open(leg)).end(), "NOT_FOUND")

    def test_a_sender_that_never_sends(self):
        leg = self.leg()
        begin = time.monotonic()
        silent = Stream(self.decode)
        self.assertEqual(silent.end(), "DEADLINE_EXCEEDED")
        self.assertLess(time.monotonic() - begin, 8)
        leg.events.cancel()

    def test_many_streams_that_open_nothing(self):
        leg = self.leg()
        streams = [Stream(self.decode) for _ in range(600)]
        until(lambda: any(not stream.replies.is_active() for stream in streams), 5, "all were taken")
        for stream in streams:
            stream.replies.cancel()
        until(lambda: self.opens(leg), 5, "no room for a stream that opens something")
        leg.events.cancel()

    def opens(self, leg):
        try:
            Stream(self.decode, self.open(leg)).read("opened")
        except grpc.RpcError as error:
            self.assertEqual(error.code().name, "RESOURCE_EXHAUSTED")
            return False
        return True


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


SETTINGS = frame(4, 0, 0)


def header(name, value):
    """A literal without indexing."""
    return b"\0" + bytes([len(name)]) + name + (bytes([len(value)]) if len(value) < 127 else long_length(len(value))) + value


def long_length(size):
    size -= 127
    out = b"\x7f"
    while size >= 128:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size])


def call_headers(stream, flags=4, extra=b""):
    block = b"".join(
        header(name, value)
        for name, value in (
            (b":method", b"POST"),
            (b":scheme", b"http"),
            (b":path", b"/baton.v1.Inference/GenerateStream"),
            (b":authority", b"x"),
            (b"te", b"trailers"),
            (b"content-type", b"application/grpc"),
        )
    )
    return frame(1, flags, stream, block + extra)


class HostileClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.cluster = Cluster(BINARIES[1:], cls.folder, prefill=1, decode=1)
        cls.router = cls.cluster.router

    @classmethod
    def tearDownClass(cls):
        cls.cluster.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.descriptors = self.router.descriptors()
        self.memory = self.router.resident_bytes()
        self.sockets = []

    def tearDown(self):
        self.check_served()
        for each in self.sockets:
            each.close()
        until(
            lambda: self.router.descriptors() <= self.descriptors + 8,
            5,
            lambda: "%d descriptors, %d before" % (self.router.descriptors(), self.descriptors),
        )
        self.cluster.await_idle(2)
        self.assertLess(self.router.resident_bytes() - self.memory, 128 << 20)
        self.check_served()

    def check_served(self):
        """By a connection of its own."""
        channel = grpc.insecure_channel(self.router.address, [("grpc.use_local_subchannel_pool", 1)])
        request = stubs.inference_pb2.GenerateRequest(prompt="hello", stopping=dict(max_tokens=2))
        call = Call(stubs.inference_pb2_grpc.InferenceStub(channel), request).finish(15)
        channel.close()
        self.assertEqual(call.code.name, "OK", call.text)

    def connect(self, first=PREFACE + SETTINGS):
        each = socket.create_connection(("127.0.0.1", self.router.port), timeout=10)
        self.sockets.append(each)
        each.sendall(first)
        return each

    def send(self, each, payload):
        """Until the peer has had enough of it."""
        each.settimeout(2)
        try:
            each.sendall(payload)
        except OSError:
            pass

    def test_many_streams(self):
        each = self.connect()
        self.send(each, b"".join(call_headers(2 * i + 1) for i in range(5000)))

    def test_streams_opened_and_reset(self):
        each = self.connect()
        reset = b"".join(call_headers(2 * i + 1) + frame(3, 0, 2 * i + 1, struct.pack(">I", 8)) for i in range(20000))
        self.send(each, reset)

    def test_pings_and_settings(self):
        self.send(self.connect(), frame(6, 0, 0, b"12345678") * 50000)
        self.send(self.connect(), SETTINGS * 50000)
        self.send(self.connect(), frame(0, 0, 0) * 10000)
        self.send(self.connect(), frame(2, 0, 1, b"\0\0\0\0\x10") * 10000)

    def test_huge_headers(self):
        channel = grpc.insecure_channel(self.router.address)
        stub = stubs.inference_pb2_grpc.InferenceStub(channel)
        with self.assertRaises(grpc.RpcError) as raised:
            stub.Generate(stubs.inference_pb2.GenerateRequest(prompt="x"), metadata=[("x", "y" * 100000)], timeout=5)
        self.assertIn(raised.exception.code().name, ("RESOURCE_EXHAUSTED", "UNAVAILABLE"))
        channel.close()
        # Without an end: a header block that is never complete.
        each = self.connect()
        self.send(each, call_headers(1, flags=0) + frame(9, 0, 1, header(b"x", b"y" * 10000)) * 1000)

    def test_frames_that_are_none(self):
        for payload in (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(500),
            os.urandom(100000),
            PREFACE + os.urandom(1000),
            PREFACE + SETTINGS + b"\xff\xff\xff\0\0\0\0\0\1" + bytes(100000),
            PREFACE + SETTINGS + frame(1, 4, 1, b"\xff" * 100),
            PREFACE + SETTINGS + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 3,
            PREFACE + SETTINGS + frame(3, 0, 0, b"\0\0\0\1"),
            PREFACE + SETTINGS + call_headers(1) + frame(0, 0, 1, b"\0\xff\xff\xff\xff" + bytes(1000)),
            PREFACE + SETTINGS + call_headers(1) + frame(0, 0, 1, b"\1\0\0\0\4abcd"),
            PREFACE + SETTINGS + call_headers(2),
        ):
            self.send(self.connect(b""), payload)
        self.check_served()

    def test_clients_that_send_a_byte_at_a_time(self):
        slow = [self.connect(b"") for _ in range(200)]
        for i in range(10):
            for each in slow:
                self.send(each, PREFACE[i : i + 1])
            self.check_served()

    def test_a_body_that_never_ends(self):
        each = self.connect(PREFACE + SETTINGS + call_headers(1) + frame(0, 0, 1, b"\0\0\0\x10\0"))
        for _ in range(20):
            self.send(each, frame(0, 0, 1, b"x"))
        self.check_served()

    def test_a_reader_without_a_window(self):
        # SETTINGS_INITIAL_WINDOW_SIZE 0: nothing of the answers can be written.
        body = stubs.inference_pb2.GenerateRequest(prompt="hello", stopping=dict(max_tokens=50)).SerializeToString()
        each = self.connect(PREFACE + frame(4, 0, 0, b"\0\4\0\0\0\0"))
        for i in range(100):
            stream = 2 * i + 1
            self.send(each, call_headers(stream) + frame(0, 1, stream, b"\0" + struct.pack(">I", len(body)) + body))
        self.check_served()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
