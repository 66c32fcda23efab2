"""Router, prefill and decode services as real processes on a tiny model, every link between them through a Relay.

    client --front--> router --to_prefill[i]--> prefill[i] --to_landing[j]--> decode[j]
                             --to_decode[j]---> decode[j]
"""

import collections
import json
import os
import signal
import socket
import subprocess
import threading
import time

import grpc

import stubs
from relay import Loop, Relay

READY_SECONDS = 20
SERVING = stubs.control_pb2.WORKER_STATE_SERVING

# Prompts are computed in steps of this many tokens, so that a long one takes several and its KV crosses in several pieces.
CHUNK_TOKENS = 128
WORKER_FLAGS = [
    "--metrics-listen=127.0.0.1:0",
    "--kv-memory=8MiB",
    "--threads=1",
    "--log-format=json",
    "--chunk-tokens=%d" % CHUNK_TOKENS,
    "--token-budget=%d" % CHUNK_TOKENS,
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, seconds, what):
    """Waits for `condition()` to be true and returns how long that took."""
    begin = time.monotonic()
    while True:
        reached = condition()
        now = time.monotonic()
        if reached:
            return now - begin
        if now - begin > seconds:
            raise AssertionError("%s: not within %.1f s" % (what() if callable(what) else what, seconds))
        time.sleep(0.005)


class Process:
    """One service: started, killed and started again at the same address."""

    def __init__(self, name, binary, flags):
        self.name = name
        self.port = free_port()
        self.address = "127.0.0.1:%d" % self.port
        self.metrics = None  # address
        self.log = collections.deque(maxlen=400)
        self._command = [binary, "--listen=" + self.address, *flags]
        self._channel = None
        self._popen = None
        self.instance = None  # id

    def start(self):
        self._popen = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.instance = None
        threading.Thread(target=self._read_log, args=[self._popen.stderr], daemon=True).start()
        if self._channel is not None:
            self._channel.close()
        self._channel = grpc.insecure_channel(self.address, [("grpc.enable_http_proxy", 0)])

    def _read_log(self, pipe):
        for line in pipe:
            self.log.append(line.rstrip())
            event = json.loads(line) if line.startswith("{") else {}
            if event.get("event") == "ready":
                self.metrics = event.get("metrics", self.metrics)
                self.instance = event["instance_id"]
            elif event.get("event") == "metrics_ready":
                self.metrics = event["address"]

    def await_ready(self):
        until(lambda: self.instance or self._popen.poll() is not None, READY_SECONDS, lambda: self.name + " is not ready")
        if not self.instance:
            raise AssertionError("%s ended: %s" % (self.name, "\n".join(self.log)))

    @property
    def pid(self):
        return self._popen.pid

    def running(self):
        return self._popen is not None and self._popen.poll() is None

    def send(self, number):
        self._popen.send_signal(number)

    def kill(self):
        self.send(signal.SIGKILL)
        self._popen.wait()

    def terminate(self, seconds=30):
        """As an orchestrator does: SIGTERM, then the end is waited for. Returns the exit status."""
        self.send(signal.SIGTERM)
        return self._popen.wait(seconds)

    def stub(self, kind):
        return kind(self._channel)

    def inference(self):
        return self.stub(stubs.inference_pb2_grpc.InferenceStub)

    def control(self):
        return self.stub(stubs.control_pb2_grpc.ControlStub)

    def load(self):
        return self.control().GetLoad(stubs.control_pb2.GetLoadRequest(), timeout=5, wait_for_ready=True)

    def busy(self):
        """What it holds, as text; empty when every block is free and no request is there."""
        load = self.load()
        taken = [b for b in load.blocks if b.reserved or b.landing or b.active or b.draining]
        if load.requests_running or load.requests_waiting or taken:
            return "%s: %s" % (self.name, str(load).replace("\n", " "))
        return ""

    def resident_bytes(self):
        with open("/proc/%d/statm" % self.pid, encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def owns_port(self, port):
        """Whether one of its TCP connections has this local port."""
        inodes = set()
        for table in ("tcp", "tcp6"):
            with open("/proc/%d/net/%s" % (self.pid, table), encoding="ascii") as file:
                for line in file:
                    fields = line.split()
                    if fields[1].endswith(":%04X" % port):
                        inodes.add("socket:[%s]" % fields[9])
        folder = "/proc/%d/fd/" % self.pid
        for descriptor in os.listdir(folder):
            try:
                if os.readlink(folder + descriptor) in inodes:
                    return True
            except FileNotFoundError:
                continue
        return False


class Call(threading.Thread):
    """One GenerateStream, read to its end."""

    def __init__(self, stub, request, timeout=60, pause=0.0):
        super().__init__(daemon=True)
        self.request = request
        self.tokens = []
        self.count = 0  # of tokens
        self.problem = None
        self.times = []
        self.last = None
        self.code = None
        self.text = ""  # of the status
        self.answer = ""
        self._pause = pause  # before each message is read
        self._call = stub.GenerateStream(request, timeout=timeout)
        self.start()

    def run(self):
        try:
            for message in self._call:
                if message.count and message.index != self.count:
                    self.problem = "token %d came where %d was due" % (message.index, self.count)
                self.count += message.count
                self.tokens += message.tokens
                self.answer += message.text
                self.times.append(time.monotonic())
                self.last = message
                if self._pause:
                    time.sleep(self._pause)
        except grpc.RpcError:
            pass
        self.code = self._call.code()
        self.text = self._call.details() or ""

    def cancel(self):
        self._call.cancel()

    def finish(self, seconds):
        self.join(seconds)
        if self.is_alive():
            raise AssertionError("no end of %s within %.1f s" % (self.request.request_id, seconds))
        if self.problem:
            raise AssertionError(self.problem)
        return self

    @property
    def recoveries(self):
        return self.last.timings.recoveries if self.last is not None else 0


class Cluster:
    def __init__(self, binaries, folder, prefill=2, decode=2, frames=False, router_flags=(), worker_flags=()):
        """`binaries`: make_tiny_model, router, prefill, decode. `frames`: the relays have gates."""
        make_model, router, prefill_binary, decode_binary = binaries
        loop = Loop()
        model = subprocess.check_output([make_model, "llama", "1", folder], text=True).strip()
        flags = ["--model=" + model, *WORKER_FLAGS, *worker_flags]
        self.to_landing = [Relay(loop, frames) for i in range(decode)]
        self.prefill = [Process("prefill%d" % i, prefill_binary, flags) for i in range(prefill)]
        self.decode = [
            Process("decode%d" % i, decode_binary, [*flags, "--advertise=" + self.to_landing[i].address])
            for i in range(decode)
        ]
        self.to_prefill = [Relay(loop, frames) for i in range(prefill)]
        self.to_decode = [Relay(loop, frames) for i in range(decode)]
        self.front = Relay(loop, frames)
        self.router = Process(
            "router",
            router,
            [
                "--model=" + model,
                "--metrics-listen=127.0.0.1:0",
                "--log-format=json",
                "--probe-interval=100ms",
                "--prefill=" + ",".join(link.address for link in self.to_prefill),
                "--decode=" + ",".join(link.address for link in self.to_decode),
                *router_flags,
            ],
        )
        self.front.target = self.router.port
        for links, processes in ((self.to_prefill, self.prefill), (self.to_decode, self.decode), (self.to_landing, self.decode)):
            for link, process in zip(links, processes):
                link.target = process.port
        for process in self.processes:
            process.start()
        for process in self.processes:
            process.await_ready()
        self.front_channel = grpc.insecure_channel(self.front.address, [("grpc.enable_http_proxy", 0)])
        self.await_serving()

    @property
    def workers(self):
        return [*self.prefill, *self.decode]

    @property
    def processes(self):
        return [*self.workers, self.router]

    @property
    def links(self):
        return [self.front, *self.to_prefill, *self.to_decode, *self.to_landing]

    def close(self):
        for process in self.processes:
            if process.running():
                process.send(signal.SIGCONT)
                process.kill()

    def not_serving(self):
        """The running workers that the router does not use as they are now, as text."""
        seen = self.router.control().ListWorkers(stubs.control_pb2.ListWorkersRequest(), timeout=5, wait_for_ready=True)
        serving = {worker.instance_id for worker in seen.workers if worker.state == SERVING}
        missing = [process.name for process in self.workers if process.running() and process.instance not in serving]
        return "%s in %s" % (missing, str(seen).replace("\n", " ")) if missing else ""

    def suspects(self):
        """The workers that the router suspects."""
        seen = self.router.control().ListWorkers(stubs.control_pb2.ListWorkersRequest(), timeout=5)
        return [worker.name for worker in seen.workers if worker.state == stubs.control_pb2.WORKER_STATE_SUSPECT]

    def await_serving(self, seconds=10):
        return until(lambda: not self.not_serving(), seconds, lambda: "not serving: " + self.not_serving())

    def busy(self):
        return "; ".join(filter(None, (process.busy() for process in self.processes if process.running())))

    def await_idle(self, seconds):
        """Until every block of every running worker is free and no request is left. Returns how long that took."""
        return until(lambda: not self.busy(), seconds, lambda: "still held: " + self.busy())

    def restart(self, process):
        process.start()
        process.await_ready()

    def print_logs(self, about):
        """The lines that name it."""
        for process in self.processes:
            for line in list(process.log):
                if about in line:
                    print("    %s: %s" % (process.name, line))
