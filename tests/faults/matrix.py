"""The fault matrix on real processes: puts a request into a phase, breaks something, and compares what follows with matrix.txt.

    matrix.py BINARIES... [--cover] [--cells PATTERN] [--clusters N]

Phases are reached by relays between the processes that hold one message back. After each cell everything must be freed in time,
whatever was broken comes back, and the next request is answered as the first was.

    fault       process                                          link
    kill        SIGKILL                                          -
    stop        SIGSTOP until its outcome is known               -
    slow        runs for a tenth of the time                     5 ms for every 8 KiB
    cut         every connection of it is reset                  every connection of it is reset
    half-open   its connections and new ones swallow all bytes   the same
"""

import argparse
import collections
import fnmatch
import pathlib
import queue
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

import stubs
from cluster import Call, Cluster, until
from phases import PHASES, Attempts, Phases
from relay import all_ports

FAULTS = ["kill", "stop", "slow", "cut", "half-open"]
OUTCOMES = ["same", "again", "broken", "gone", "-"]
PROMPT_BYTES = 1000
ANSWER_TOKENS = 200  # no worker has sent them all before a fault in the middle stops it
# From the fault, while the peers of what broke are reachable and running, and what a busy machine adds.
CLOSED_SECONDS = 1.0  # a closed connection
SILENT_SECONDS = 3.0  # a silent one
MACHINE_SECONDS = 0.5
# How long the broken thing may stay unnoticed before the message that was held back goes on.
HOLD_SECONDS = 0.3
PROBE_SECONDS = 2.0  # until the router's probes find a silent worker

Cell = collections.namedtuple("Cell", "target phase fault expected")
Result = collections.namedtuple("Result", "cell problem noticed ended freed")


def read_table(path):
    cells = []
    for line in path.read_text(encoding="utf-8").splitlines():
        words = line.split()
        if not words or words[0] == "#":
            continue
        if len(words) != 2 + len(FAULTS) or not set(words[2:]) <= set(OUTCOMES):
            raise ValueError("%s: %s" % (path, line))
        cells += [Cell(words[0], words[1], fault, outcome) for fault, outcome in zip(FAULTS, words[2:])]
    if len(set(cell[:3] for cell in cells)) != len(cells) or {cell.phase for cell in cells} != set(PHASES):
        raise ValueError("%s: a cell is missing or there twice" % path)
    return cells


class ClientProcess:
    """`baton generate` as a client that can be killed and stopped."""

    def __init__(self, baton, address, prompt):
        self._popen = subprocess.Popen(
            [baton, "generate", "--server", address, "--quiet", "--seed=7", "--ignore-eos"]
            + ["--max-tokens=%d" % ANSWER_TOKENS, prompt],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def send(self, number):
        self._popen.send_signal(number)

    def end(self):
        self._popen.kill()
        self._popen.wait()


class Matrix:
    """One cluster and the cells that are run on it, one after the other."""

    def __init__(self, binaries, folder, name):
        self.baton, *services = binaries
        self.name = name
        self.cluster = Cluster(services, folder, frames=True, router_flags=["--prefill-depth=256"])
        self.attempts = Attempts(self.cluster, name + "-")
        self.phases = Phases(self.cluster, self.attempts)
        self.front = stubs.inference_pb2_grpc.InferenceStub(self.cluster.front_channel)
        self.prompt = "".join(random.Random(1).choices("abcdefgh ", k=PROMPT_BYTES))
        self.count = 0
        # Twice, so that every link has carried something.
        first = self.call(self.front, "first").finish(20)
        self.expected = first.tokens
        self.check_same(first)
        for i in range(4):
            self.check_same(self.call(self.front, "warm%d" % i).finish(20))

    def close(self):
        self.cluster.close()

    def call(self, stub, request_id, **options):
        request = stubs.inference_pb2.GenerateRequest(request_id="%s-%s" % (self.name, request_id), prompt=self.prompt)
        request.sampling.seed = 7
        request.stopping.max_tokens = ANSWER_TOKENS
        request.stopping.ignore_eos = True
        request.response.return_tokens = True
        return Call(stub, request, **options)

    def check_same(self, call):
        if call.code.name != "OK":
            raise AssertionError("%s: %s: %s" % (call.request.request_id, call.code.name, call.text))
        if call.tokens != self.expected:
            raise AssertionError("%s: %s where %s was due" % (call.request.request_id, call.tokens, self.expected))

    def run(self, cell):
        self.count += 1
        try:
            noticed, ended, freed = Run(self, cell).run()
            return Result(cell, None, noticed, ended, freed)
        except AssertionError as problem:
            return Result(cell, str(problem), None, None, None)


class Run:
    """One cell."""

    def __init__(self, matrix, cell):
        self.matrix, self.cell = matrix, cell
        self.cluster, self.attempts = matrix.cluster, matrix.attempts
        by_process = cell.target == "client" and cell.fault in ("kill", "stop")
        self.request_id = "" if by_process else "%s-%d" % (matrix.name, matrix.count)
        self.attempts.forget()
        self.blockers = []
        self.gates = []
        self.victim = self.client = self.broken_at = None
        self.until_freed = cell.target in ("router", "client") and cell.fault != "slow"

    def run(self):
        try:
            self.reach_and_break()
            try:
                ended = self.await_outcome()
            finally:
                self.mend()
            freed = self.freed
            self.after()
            return self.noticed(), ended, freed
        finally:
            self.open_gates()

    # Into the phase.

    def reach_and_break(self):
        phase = self.cell.phase
        if phase == "queued":
            self.queue_behind()
        else:
            self.gates = PHASES[phase](self.matrix.phases, self.request_id, self.break_it)
        self.start_victim()
        if phase == "queued":
            until(lambda: self.cluster.router.load().requests_waiting == 1, 5, "the request does not wait")
            self.break_it()
        else:
            until(lambda: any(gate.reached.is_set() for gate in self.gates), 10, "the phase is not reached")

    def queue_behind(self):
        """Gives every prefill service a prompt that never reaches it, so that the next request waits in the router."""
        name = b"%s-%d-ahead" % (self.matrix.name.encode(), self.matrix.count)
        self.gates = [
            link.close_gate(lambda opening, message, from_client: from_client and name in message)
            for link in self.cluster.to_prefill
        ]
        stub = self.cluster.router.inference()
        self.blockers = [
            self.matrix.call(stub, "%d-ahead%d" % (self.matrix.count, i)) for i in range(len(self.cluster.prefill))
        ]
        until(lambda: all(gate.reached.is_set() for gate in self.gates), 5, "prefill is not busy")

    def start_victim(self):
        if not self.request_id:
            self.client = ClientProcess(self.matrix.baton, self.cluster.front.address, self.matrix.prompt)
        else:
            pause = 0.005 if self.cell.target == "client" and self.cell.fault == "slow" else 0.0
            self.victim = self.matrix.call(self.matrix.front, str(self.matrix.count), pause=pause)

    # The fault.

    def process(self):
        return {
            "prefill": self.cluster.prefill[self.prefill],
            "decode": self.cluster.decode[self.decode],
            "router": self.cluster.router,
            "client": self.client,
        }.get(self.cell.target)

    def links(self):
        """Of the target: (relay, which of its connections, by their client's port)."""
        cluster, p, d = self.cluster, self.prefill, self.decode
        return {
            "prefill": [(cluster.to_prefill[p], all_ports)] + [
                (link, cluster.prefill[p].owns_port) for link in cluster.to_landing
            ],
            "decode": [(cluster.to_decode[d], all_ports), (cluster.to_landing[d], all_ports)],
            "router": [(link, all_ports) for link in [cluster.front, *cluster.to_prefill, *cluster.to_decode]],
            "client": [(cluster.front, all_ports)],
            "link:router-prefill": [(cluster.to_prefill[p], all_ports)],
            "link:router-decode": [(cluster.to_decode[d], all_ports)],
            "link:prefill-decode": [(cluster.to_landing[d], all_ports)],
        }[self.cell.target]

    def break_it(self):
        """The moment the phase is reached, with the first of its gates."""
        if self.broken_at is not None:
            return
        self.broken_at = time.monotonic()
        attempts = self.attempts.of(self.request_id)
        instances = [process.instance for process in self.cluster.prefill]
        self.prefill = instances.index(attempts[0].prefill_instance) if attempts else 0
        self.decode = attempts[0].decode if attempts else 0
        fault = self.cell.fault
        if fault == "kill":
            if self.client is not None:
                self.client.end()
            else:
                self.process().kill()
        elif fault == "stop":
            self.process().send(signal.SIGSTOP)
        elif fault == "cut":
            for link, of in self.links():
                link.cut(of)
        elif fault == "half-open":
            for link, of in self.links():
                link.silence(of)
        elif self.cell.target.startswith("link:"):
            for link, _ in self.links():
                link.slow(0.005)
        elif self.cell.target != "client":
            self.slowing = threading.Event()
            threading.Thread(target=self.slow_down, args=[self.process(), self.slowing], daemon=True).start()

    @staticmethod
    def slow_down(process, ended):
        while not ended.wait(0.01):
            process.send(signal.SIGSTOP)
            time.sleep(0.09)
            process.send(signal.SIGCONT)

    def mend(self):
        """Ends the fault."""
        fault = self.cell.fault
        self.open_gates()
        if fault == "slow" and hasattr(self, "slowing"):
            self.slowing.set()
            time.sleep(0.1)
        for link in self.cluster.links:
            link.slow(0)
            link.heal()
        if fault == "stop":
            self.process().send(signal.SIGCONT)
        if fault == "kill" and self.client is None:
            self.cluster.restart(self.process())
        if self.client is not None:
            self.client.end()

    def open_gates(self):
        for gate in self.gates:
            gate.open()
        self.gates = []

    # What follows.

    def bound(self):
        silent = self.cell.fault in ("stop", "half-open")
        return (SILENT_SECONDS if silent else CLOSED_SECONDS) + MACHINE_SECONDS

    def seconds(self):
        return time.monotonic() - self.broken_at

    def noticed(self):
        """When the router began another attempt, in seconds from the fault."""
        attempts = self.attempts.of(self.request_id)
        return attempts[1].time - self.broken_at if len(attempts) > 1 else None

    def held(self):
        """What those hold that are running and not cut off; without those ahead in the queue."""
        target = None if self.cell.target.startswith("link:") else self.process()
        skip = target if self.cell.fault in ("stop", "kill") else None
        processes = [process for process in self.cluster.processes if process.running() and process is not skip]
        if self.cell.phase == "queued":
            processes = [process for process in processes if process is self.cluster.router]
            loads = [process.load() for process in processes]
            # Those ahead may queue again themselves.
            return "; ".join(
                "the router's queue" for load in loads if load.requests_running + load.requests_waiting > len(self.blockers)
            )
        return "; ".join(filter(None, (process.busy() for process in processes)))

    def await_outcome(self):
        if self.until_freed:
            self.freed = self.await_freed(self.bound())
            self.open_gates()
            if self.cell.target == "router" and self.cell.fault == "stop":
                self.process().send(signal.SIGCONT)
            if self.cell.fault == "half-open":
                for link in self.cluster.links:
                    link.heal()
        else:
            self.await_notice()
            self.open_gates()
        if self.victim is None:
            return None
        self.victim.finish(20)
        ended = self.seconds()
        self.check_outcome()
        if not self.until_freed:
            self.freed = self.await_freed(max(ended + CLOSED_SECONDS, self.bound()))
        return ended

    def await_notice(self):
        """What is held back goes on when the fault is known, so that the order of the two is always the same."""
        target, phase, fault, _ = self.cell
        if fault in ("kill", "cut"):
            known, limit = lambda: self.noticed() is not None, HOLD_SECONDS
        elif phase == "queued" and fault != "slow" and target != "link:prefill-decode":
            known, limit = self.cluster.suspects, PROBE_SECONDS
        else:
            return
        while not known() and self.seconds() < limit:
            time.sleep(0.005)

    def await_freed(self, by):
        until(lambda: not self.held(), by - self.seconds(), lambda: "still held: " + self.held())
        return self.seconds()

    def check_outcome(self):
        call, expected = self.victim, self.cell.expected
        if expected in ("same", "again"):
            self.matrix.check_same(call)
            outcome = "again" if call.recoveries else "same"
        else:
            outcome = "broken" if call.code.name == "UNAVAILABLE" else call.code.name
        if outcome != expected:
            raise AssertionError("%s, recoveries %d, %s" % (outcome, call.recoveries, call.text))
        noticed = self.noticed()
        if expected == "again" and self.cell.target != "router":
            if noticed is None or noticed > self.bound() + HOLD_SECONDS:
                raise AssertionError("noticed after %s" % noticed)

    def after(self):
        """All is as it was before."""
        for blocker in self.blockers:
            blocker.finish(20)
            if self.cell.target != "router" or blocker.code.name != "UNAVAILABLE":
                self.matrix.check_same(blocker)
        self.cluster.await_serving()
        self.cluster.await_idle(CLOSED_SECONDS + MACHINE_SECONDS)
        self.matrix.check_same(self.matrix.call(self.matrix.front, "%d-next" % self.matrix.count).finish(20))


def run_all(cells, binaries, clusters):
    """Runs the cells on so many clusters at a time; prints each as it ends and returns the results."""
    waiting = queue.SimpleQueue()
    for cell in cells:
        waiting.put(cell)
    results = []

    def work(name):
        with tempfile.TemporaryDirectory() as folder:
            matrix = Matrix(binaries, folder, name)
            try:
                while True:
                    try:
                        cell = waiting.get_nowait()
                    except queue.Empty:
                        return
                    result = matrix.run(cell)
                    results.append(result)
                    report(result)
                    if result.problem:
                        matrix.cluster.print_logs('"%s-%d' % (matrix.name, matrix.count))
                        matrix.close()
                        matrix = Matrix(binaries, folder, name)
            finally:
                matrix.close()

    threads = [threading.Thread(target=work, args=["c%d" % i]) for i in range(clusters)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def seconds(value):
    return "      -" if value is None else "%6.2f s" % value


def report(result):
    cell = result.cell
    print(
        "%-20s %-13s %-10s %-7s noticed %s  ended %s  freed %s  %s"
        % (*cell, seconds(result.noticed), seconds(result.ended), seconds(result.freed), result.problem or "as expected"),
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs=5, help="baton, make_tiny_model, baton_router, baton_prefill, baton_decode")
    parser.add_argument("--cells", default="*", help='of "target phase fault", with * and ?')
    parser.add_argument("--cover", type=int, default=1, help="every so many-th cell, so that each row and column has some")
    parser.add_argument("--clusters", type=int, default=3, help="at a time")
    options = parser.parse_args()
    table = read_table(pathlib.Path(__file__).with_name("matrix.txt"))
    cells = [cell for cell in table if cell.expected != "-" and fnmatch.fnmatch(" ".join(cell[:3]), options.cells)]
    cells = cells[:: options.cover]
    results = run_all(cells, options.binaries, options.clusters)
    failed = [result for result in results if result.problem]
    print("%d cells, %d as expected, %d not" % (len(cells), len(results) - len(failed), len(cells) - len(results) + len(failed)))
    return 1 if failed or len(results) != len(cells) else 0


if __name__ == "__main__":
    sys.exit(main())
