"""Load on a cluster whose every answer is known: requests of all sorts, each compared with what it was without any fault."""

import collections
import random
import threading
import time

import stubs
from cluster import Call

WORDS = "the hello world and in or an wood water we they there other anger thing".split()
KINDS = 40

# An answer as far as faults may not change it.
Answer = collections.namedtuple("Answer", "tokens text finish usage")


def make_request(rng):
    """Any of the shapes that clients send, its seed and with it its answer fixed."""
    request = stubs.inference_pb2.GenerateRequest()
    words = rng.choices(WORDS, k=rng.choice([3, 20, 60, 150]))
    shape = rng.randrange(3)
    if shape == 0:
        request.prompt = " ".join(words)
    elif shape == 1:
        request.chat.messages.add(role="user", content=" ".join(words))
    else:
        request.tokens.ids.extend(rng.randrange(3, 270) for _ in range(rng.choice([1, 40, 400])))
    request.sampling.seed = rng.randrange(1 << 62)
    if rng.random() < 0.5:
        request.sampling.temperature = rng.choice([0, 0.7])
    if rng.random() < 0.3:
        request.sampling.top_p = 0.9
        request.sampling.repetition_penalty = 1.1
    request.stopping.max_tokens = rng.choice([1, 2, 16, 60, 200])
    if rng.random() < 0.6:
        request.stopping.ignore_eos = True
    if rng.random() < 0.3:
        request.stopping.stop.extend(["er", "zz"])
    if rng.random() < 0.2:
        request.response.logprobs = 2
    request.response.return_tokens = True
    return request


def answer_of(call):
    last = call.last
    return Answer(tuple(call.tokens), call.answer, last.finish.SerializeToString(), last.usage.SerializeToString())


class Load:
    """Threads that send requests, one after the other, until told to stop."""

    def __init__(self, cluster, seed, streams):
        self._cluster = cluster
        self._stub = stubs.inference_pb2_grpc.InferenceStub(cluster.front_channel)
        rng = random.Random(seed)
        self._requests = [make_request(rng) for _ in range(KINDS)]
        self._answers = [self._fault_free(request, i) for i, request in enumerate(self._requests)]
        self._lock = threading.Lock()
        self.counts = collections.Counter()
        self.problems = []  # text
        self.gaps = []  # seconds without a token, the longest of each answer that was recovered
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=[i, seed + 1 + i]) for i in range(streams)]
        for thread in self._threads:
            thread.start()

    def _fault_free(self, request, i):
        request.request_id = "expected-%d" % i
        call = Call(self._stub, request).finish(30)
        if call.code.name != "OK" or call.recoveries:
            raise AssertionError("without a fault: %s: %s" % (call.code, call.text))
        return answer_of(call)

    def _run(self, stream, seed):
        rng = random.Random(seed)
        number = 0
        while not self._stop.is_set():
            kind = rng.randrange(KINDS)
            request = stubs.inference_pb2.GenerateRequest()
            request.CopyFrom(self._requests[kind])
            request.request_id = "load-%d-%d" % (stream, number)
            number += 1
            behaviour = rng.random()
            begin = time.monotonic()
            call = Call(self._stub, request, pause=0.01 if behaviour < 0.05 else 0.0)
            if behaviour > 0.92:
                call.join(rng.choice([0.001, 0.01, 0.05]))
                call.cancel()
            call.join(70)
            self._judge(call, self._answers[kind], behaviour, begin)

    def _judge(self, call, expected, behaviour, begin):
        problem = call.problem and "wrong: " + call.problem
        if call.code is None:
            problem = "no end"
        elif call.code.name == "OK":
            if answer_of(call) != expected:
                problem = "wrong: %s where %s was due" % (answer_of(call), expected)
        elif behaviour <= 0.92 or call.code.name != "CANCELLED":
            problem = "%s: %s" % (call.code.name, call.text)
        with self._lock:
            self.counts["requests"] += 1
            self.counts["cancelled"] += behaviour > 0.92
            self.counts["slow readers"] += behaviour < 0.05
            self.counts["tokens"] += len(call.tokens)
            if problem:
                self.counts["wrong" if problem.startswith("wrong") else "errors"] += 1
                self.problems.append("%s after %.2f s: %s" % (call.request.request_id, time.monotonic() - begin, problem))
            if call.recoveries:
                self.counts["recoveries"] += call.recoveries
                times = [begin, *call.times]
                self.gaps.append(max(later - earlier for earlier, later in zip(times, times[1:])))

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join()
