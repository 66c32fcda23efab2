"""Mixed load with random faults for a time: every answer must come, and be what it is without a fault.

    soak.py BINARIES... --minutes N [--seed N] [--json FILE]

One thing is broken at a time, and mended before the next: a worker is killed, stopped, slowed down or drained and started again, a
link is cut or left half-open. Clients meanwhile cancel and read slowly. The memory of every process and the file descriptors of the
router, which is never restarted, must stay flat.
"""

import argparse
import collections
import json
import random
import signal
import statistics
import sys
import tempfile
import threading
import time

from cluster import Cluster
from load import Load
from metrics import Moved

STREAMS = 6
COUNTS = ("requests", "tokens", "cancelled", "slow readers", "recoveries", "errors", "wrong")
SAMPLE_SECONDS = 0.5
# These take more than a worker's fault to move; the tests named move them.
MOVED_ELSEWHERE = {
    "baton_loop_stalls_total": "engine/loop_watch_test.cc",  # a loop that hangs while its process runs
    "baton_recipe_changes_total": "router/generate_call_test.cc",  # processors of two kinds
    "baton_retries_held_total": "router/router_test.cc",  # a storm
    "baton_preemptions_total": "decode_service/decode_scheduler_test.cc",  # pools that are too small
}
# What a process may grow by, from the end of its first third on: noise of the allocator.
GROWTH_BYTES = 8 << 20


class Samples(threading.Thread):
    """Memory and descriptors of every process over time, and what its metrics have shown."""

    def __init__(self, processes, moved):
        super().__init__(daemon=True)
        self._processes = processes
        self._moved = moved
        self._ended = threading.Event()
        self._begin = time.monotonic()
        self._lives = collections.defaultdict(list)  # (name, pid) -> [(minutes, bytes, descriptors)]
        self.start()

    def run(self):
        while not self._ended.wait(SAMPLE_SECONDS):
            for process in self._processes:
                try:
                    row = ((time.monotonic() - self._begin) / 60, process.resident_bytes(), process.descriptors())
                except FileNotFoundError:
                    continue  # killed
                self._lives[process.name, process.pid].append(row)
                self._moved.look(process)

    def stop(self):
        self._ended.set()
        self.join()

    def report(self, name):
        """Of the longest life of a process, from its first third on."""
        rows = max((rows for (of, _), rows in self._lives.items() if of == name), key=len)
        rows = rows[len(rows) // 3 :]
        third = max(len(rows) // 3, 1)
        early, late = rows[:third], rows[-third:]
        slopes = [0, 0]
        if len(rows) > 1:
            slopes = [statistics.linear_regression([r[0] for r in rows], [r[i] for r in rows]).slope for i in (1, 2)]
        return {
            "minutes": round(rows[-1][0] - rows[0][0], 2),
            "rss_mib": round(rows[-1][1] / 2**20, 1),
            "rss_slope_kib_per_minute": round(slopes[0] / 1024, 1),
            "rss_growth_kib": round((median(late, 1) - median(early, 1)) / 1024),
            "descriptors": rows[-1][2],
            "descriptors_slope_per_minute": round(slopes[1], 2),
        }


def median(rows, column):
    return statistics.median(row[column] for row in rows)


class Faults:
    """Breaks and mends, one thing at a time."""

    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.rng = random.Random(seed)
        self.counts = collections.Counter()

    def one(self):
        name = self.rng.choice(["kill", "stop", "slow", "drain", "cut", "half-open"])
        process = self.rng.choice(self.cluster.workers)
        link = self.rng.choice(self.cluster.links[1:])
        self.counts[name] += 1
        if name == "kill":
            process.kill()
            time.sleep(self.rng.random())
            self.cluster.restart(process)
        elif name == "stop":
            process.send(signal.SIGSTOP)
            time.sleep(self.rng.choice([0.3, 4]))
            process.send(signal.SIGCONT)
        elif name == "slow":
            for _ in range(10):
                process.send(signal.SIGSTOP)
                time.sleep(0.09)
                process.send(signal.SIGCONT)
                time.sleep(0.01)
        elif name == "drain":
            status = process.terminate()
            if status != 0:
                raise AssertionError("%s drained and ended with %d" % (process.name, status))
            self.cluster.restart(process)
        elif name == "cut":
            link.cut()
        else:
            link.silence()
            time.sleep(4)
            link.heal()
        self.cluster.await_serving()
        # An answer that was lost once is not lost again: two losses end it.
        time.sleep(1 + self.rng.random())


def percentile(values, share):
    return round(sorted(values)[min(int(len(values) * share), len(values) - 1)], 3) if values else None


def run(options, folder):
    cluster = Cluster(options.binaries[1:], folder, router_flags=["--prefill-depth=256"])
    try:
        load = Load(cluster, options.seed, STREAMS)
        moved = Moved("docs/metrics.md")
        samples = Samples(cluster.processes, moved)
        descriptors = cluster.router.descriptors()
        faults = Faults(cluster, options.seed)
        end = time.monotonic() + options.minutes * 60
        try:
            while time.monotonic() < end and not load.problems:
                faults.one()
        finally:
            load.stop()
            samples.stop()
        freed = cluster.await_idle(4)
        for problem in load.problems[:5]:
            print(problem)
            cluster.print_logs('"%s"' % problem.split()[0])
        summary = {
            "minutes": options.minutes,
            "seed": options.seed,
            **{name: load.counts[name] for name in COUNTS},
            "faults": dict(faults.counts),
            "recovery_gap_p50_seconds": percentile(load.gaps, 0.5),
            "recovery_gap_p99_seconds": percentile(load.gaps, 0.99),
            "recovery_gap_max_seconds": percentile(load.gaps, 1),
            "seconds_until_all_was_free": round(freed, 3),
            "metrics_not_moved": [name for name in moved.missing() if name not in MOVED_ELSEWHERE],
            "processes": {process.name: samples.report(process.name) for process in cluster.processes},
        }
    finally:
        cluster.close()
    flat = all(report["rss_growth_kib"] * 1024 < GROWTH_BYTES for report in summary["processes"].values())
    closed = summary["processes"]["router"]["descriptors"] <= descriptors + STREAMS
    good = flat and closed and load.counts["requests"] > 0 and not load.problems and not summary["metrics_not_moved"]
    return summary, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs=5, help="baton, make_tiny_model, baton_router, baton_prefill, baton_decode")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="write the summary there as well")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        summary, good = run(options, folder)
    text = json.dumps(summary, indent=2)
    print(text)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            file.write(text + "\n")
    print(
        "soak: %d requests, %d faults, %d recoveries, %d errors, %d wrong, p99 recovery gap %s s, router RSS %+.0f KiB/min: %s"
        % (
            summary["requests"],
            sum(summary["faults"].values()),
            summary["recoveries"],
            summary["errors"],
            summary["wrong"],
            summary["recovery_gap_p99_seconds"],
            summary["processes"]["router"]["rss_slope_kib_per_minute"],
            "passed" if good else "FAILED",
        )
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
