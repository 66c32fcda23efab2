"""Every field of every public request at its extremes, sent to a real router: generated from the descriptors of the messages.

Each is answered, or refused with a documented status whose text names the field; the next request is served.
"""

import os
import shutil
import sys
import tempfile
import unittest

import grpc

import stubs
from cluster import Cluster

BINARIES = [os.path.abspath(path) for path in sys.argv[1:6]]
MANY = 10000
LONG = 1 << 20
# Of docs and api: what a request by itself can bring about.
DOCUMENTED = {"OK", "INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}
# As long as its place-holder in a message, so that no length changes; Python writes none of them by itself.
PLACE_HOLDER = "PLACEHOLDER"
NOT_UTF8 = [b"\xff" * 11, b"\xed\xa0\x80-\xc0\xaf-abcd", b"abcdefghij\xf0"]

DESCRIPTOR = stubs.inference_pb2.GenerateRequest.DESCRIPTOR.fields_by_name["request_id"]
INTEGERS = [0, 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
VALUES = {
    DESCRIPTOR.CPPTYPE_UINT32: INTEGERS,
    DESCRIPTOR.CPPTYPE_UINT64: INTEGERS + [1 << 63, (1 << 64) - 1],
    DESCRIPTOR.CPPTYPE_INT32: [0, 1, -1, (1 << 31) - 1, -(1 << 31)],
    DESCRIPTOR.CPPTYPE_INT64: [0, 1, -1, (1 << 63) - 1, -(1 << 63)],
    DESCRIPTOR.CPPTYPE_ENUM: [0, 1, -1, (1 << 31) - 1, -(1 << 31)],
    DESCRIPTOR.CPPTYPE_DOUBLE: [0.0, -0.0, -1.0, 5e-324, 1e308, -1e308, float("inf"), float("-inf"), float("nan")],
    DESCRIPTOR.CPPTYPE_BOOL: [False, True],
    DESCRIPTOR.CPPTYPE_STRING: ["", "\0", " ", "a" * LONG, "\U0010ffff" * 1000, "\u202e\u0301\ufeff", "<|im_end|>" * 200],
}


def bases():
    """(method, reply streams, a request that is served)."""
    inference, control = stubs.inference_pb2, stubs.control_pb2
    inputs = {
        "prompt": dict(prompt="hello"),
        "tokens": dict(tokens=dict(ids=[5, 6, 7])),
        "chat": dict(chat=dict(messages=[dict(role="user", content="hi")])),
    }
    short = dict(stopping=dict(max_tokens=2))
    for given in inputs.values():
        yield "Inference/Generate", False, inference.GenerateRequest(**given, **short)
    yield "Inference/GenerateStream", True, inference.GenerateRequest(**inputs["prompt"], **short)
    for name in ("prompt", "chat"):
        yield "Inference/Tokenize", False, inference.TokenizeRequest(**inputs[name])
    yield "Inference/Detokenize", False, inference.DetokenizeRequest(tokens=[5, 6, 7])
    yield "Control/GetServerInfo", False, control.GetServerInfoRequest()
    yield "Control/ListModels", False, control.ListModelsRequest()
    yield "Control/GetModelInfo", False, control.GetModelInfoRequest()
    yield "Control/GetLoad", False, control.GetLoadRequest()
    yield "Control/ListWorkers", False, control.ListWorkersRequest()
    yield "Control/Abort", False, control.AbortRequest(request_id="nobody")


def variants(message, path=()):
    """(path of names, bytes of the field's extreme within `message`) for every field of it and of what it contains."""
    for field in message.DESCRIPTOR.fields:
        yield from field_variants(message, field, path + (field.name,))


def field_variants(message, field, path):
    repeated = field.label == field.LABEL_REPEATED
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        for value in VALUES[field.message_type.fields_by_name["value"].cpp_type]:
            yield path, {5: value}
            yield path, {(1 << 32) - 1: value}
        yield path, {key: 1.0 for key in range(MANY)}
    elif field.message_type is not None and repeated:
        yield path, [field.message_type._concrete_class() for _ in range(MANY)]
        inner = getattr(message, field.name)
        for i in range(len(inner)):
            for name, value in variants(inner[i], path + (i,)):
                yield name, value
    elif field.message_type is not None:
        yield from variants(getattr(message, field.name), path)
    elif repeated:
        for value in VALUES[field.cpp_type]:
            yield path, [value]
        short = [value for value in VALUES[field.cpp_type] if not isinstance(value, str) or len(value) < 100]
        yield path, [short[i % len(short)] for i in range(MANY)]
        if field.cpp_type == field.CPPTYPE_STRING:
            yield path, [PLACE_HOLDER]
    else:
        for value in VALUES[field.cpp_type]:
            yield path, value
        if field.cpp_type == field.CPPTYPE_STRING:
            yield path, PLACE_HOLDER


def with_value(base, path, value):
    message = type(base)()
    message.CopyFrom(base)
    holder = message
    for name in path[:-1]:
        holder = holder[name] if isinstance(name, int) else getattr(holder, name)
    if isinstance(value, dict):
        getattr(holder, path[-1]).update(value)
    elif isinstance(value, list):
        del getattr(holder, path[-1])[:]
        getattr(holder, path[-1]).extend(value)
    else:
        setattr(holder, path[-1], value)
    return message.SerializeToString()


def describe(value):
    text = repr(value)
    return text if len(text) < 60 else "%s... (%d characters)" % (text[:40], len(text))


class ExtremesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        cls.cluster = Cluster(BINARIES[1:], cls.folder, prefill=1, decode=1)
        cls.channel = grpc.insecure_channel(cls.cluster.router.address, [("grpc.enable_http_proxy", 0)])

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.cluster.close()
        shutil.rmtree(cls.folder)

    def send(self, method, streams, request):
        """The code and the text of the status."""
        path = "/baton.v1." + method
        try:
            if streams:
                for _ in self.channel.unary_stream(path)(request, timeout=20):
                    pass
            else:
                self.channel.unary_unary(path)(request, timeout=20)
        except grpc.RpcError as error:
            return error.code().name, error.details()
        return "OK", ""

    def check_served(self):
        base = stubs.inference_pb2.GenerateRequest(prompt="hello", stopping=dict(max_tokens=2))
        self.assertEqual(self.send("Inference/Generate", False, base.SerializeToString()), ("OK", ""))

    def test_every_field(self):
        sent = 0
        for method, streams, base in bases():
            self.assertEqual(self.send(method, streams, base.SerializeToString()), ("OK", ""), method)
            for path, value in variants(base):
                request = with_value(base, path, value)
                not_utf8 = value == PLACE_HOLDER or value == [PLACE_HOLDER]
                spellings = NOT_UTF8 if not_utf8 else [PLACE_HOLDER.encode()]
                for spelling in spellings:
                    code, text = self.send(method, streams, request.replace(PLACE_HOLDER.encode(), spelling))
                    sent += 1
                    with self.subTest(method=method, field=path, value=spelling if not_utf8 else describe(value)):
                        if not_utf8:
                            self.assertEqual(code, "INVALID_ARGUMENT")
                        else:
                            self.assertIn(code, DOCUMENTED, text)
                        if code == "INVALID_ARGUMENT":
                            self.assertTrue(self.names(text, path, base), text)
            self.check_served()
        self.cluster.await_idle(1)
        print("%d requests" % sent)
        self.assertGreater(sent, 500)

    @staticmethod
    def names(text, path, base):
        """The field, or the one of its oneof that is set instead, or a message that holds it."""
        return any(name in text for name in path if isinstance(name, str))

    def test_bytes_that_are_no_message(self):
        for request in (b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x08" + b"\x80" * 20, b"\x0b" * 1000, os.urandom(4096)):
            for method, streams, _ in bases():
                code, text = self.send(method, streams, request)
                with self.subTest(method=method, request=request[:12]):
                    self.assertEqual(code, "INVALID_ARGUMENT", text)
        self.check_served()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
