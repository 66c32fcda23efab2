"""Drives the real services with the real ghz and grpcurl, through the configurations of deploy/ghz."""

import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

BINARIES = sys.argv[1:5]
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONFIGS = pathlib.Path("deploy/ghz").resolve()


def tool(variable):
    """A program that tools/test has fetched; its absence is a failure."""
    path = os.environ.get(variable, "")
    if not os.access(path, os.X_OK):
        raise AssertionError("%s does not name a program: run tools/test, which fetches it" % variable)
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Baton:
    """`baton up` with one worker of each kind."""

    def __init__(self):
        # `up` looks for the services beside itself or in one folder.
        self.folder = tempfile.mkdtemp()
        for binary in BINARIES:
            os.symlink(os.path.abspath(binary), os.path.join(self.folder, os.path.basename(binary)))
        self.address = "127.0.0.1:%d" % free_port()
        self.metrics = "127.0.0.1:%d" % free_port()
        self.log = []
        self.process = subprocess.Popen(
            [os.path.abspath(BINARIES[0]), "up", "--binaries", self.folder, "--port", self.address.split(":")[1]]
            + ["--model", os.path.join(os.environ["BATON_MODELS"], MODEL)]
            + ["--router-flags=--metrics-listen", "--router-flags=" + self.metrics],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for line in self.process.stdout:
            self.log.append(line)
            if line.startswith("baton is ready on " + self.address):
                return
        raise AssertionError("baton up ended: %s" % "".join(self.log))

    def stop(self):
        self.process.terminate()
        rest, _ = self.process.communicate(timeout=30)
        shutil.rmtree(self.folder)
        assert self.process.returncode == 0, "baton up ended with %d: %s" % (self.process.returncode, rest)

    def histogram(self, name):
        """Sum in ms and count of one of the router's histograms."""
        with urllib.request.urlopen("http://%s/metrics" % self.metrics) as page:
            text = page.read().decode()
        values = {}
        for part in ("sum", "count"):
            found = re.findall(r"^baton_%s_%s(?:\{[^}]*\})? (\S+)$" % (name, part), text, re.MULTILINE)
            values[part] = sum(float(value) for value in found)
        return values["sum"] * 1e3, values["count"]


class GhzTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.ghz = tool("BATON_GHZ")
        cls.grpcurl = tool("BATON_GRPCURL")
        cls.baton = Baton()

    @classmethod
    def tearDownClass(cls):
        cls.baton.stop()

    def run_ghz(self, config, *flags):
        command = [self.ghz, "--config", config, "--format", "json"] + list(flags) + [self.baton.address]
        run = subprocess.run(command, cwd=CONFIGS, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def run_grpcurl(self, *arguments):
        return subprocess.run(
            [self.grpcurl, "-plaintext"] + list(arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    def measured(self, config, *flags):
        """ghz's average latency, and the router's average TTFT and TPOT of the same requests, in ms."""
        names = ("time_to_first_token_seconds", "time_per_output_token_seconds")
        before = [self.baton.histogram(name) for name in names]
        report = self.run_ghz(config, *flags)
        after = [self.baton.histogram(name) for name in names]
        self.assertEqual(report["statusCodeDistribution"], {"OK": report["count"]})
        self.assertEqual(after[0][1] - before[0][1], report["count"])
        averages = [
            (late[0] - early[0]) / (late[1] - early[1]) if late[1] > early[1] else None
            for early, late in zip(before, after)
        ]
        return report["average"] / 1e6, averages[0], averages[1]

    def blocks_in_use(self):
        """Every count of KV blocks that are not free, on any worker."""
        run = self.run_grpcurl(self.baton.address, "baton.v1.Control/ListWorkers")
        workers = json.loads(run.stdout)["workers"]
        self.assertEqual(len(workers), 2)
        groups = [group for worker in workers for group in worker["load"]["blocks"]]
        self.assertTrue(all(group["free"] > 0 for group in groups))
        return [count for group in groups for state, count in group.items() if state != "free" and count]

    def test_ttft_and_tpot_by_two_runs_are_those_of_the_router(self):
        one_stream = ["-c", "1", "--connections", "1", "-n", "8"]
        self.run_ghz("full_stream.json", *one_stream)  # warm-up
        rounds = []
        for _ in range(3):
            ttft, router_ttft, _ = self.measured("ttft.json", *one_stream)
            full, _, router_tpot = self.measured("full_stream.json", *one_stream)
            tpot = (full - ttft) / 63
            print("TTFT %.2f ms, router %.2f ms; TPOT %.3f ms, router %.3f ms" % (ttft, router_ttft, tpot, router_tpot))
            self.assertGreater(ttft, router_ttft, "ghz sees what the router sees, and the way to it")
            # The machine's speed differs from run to run, and TPOT is a difference of two runs.
            rounds.append(max((ttft - router_ttft) / (3 + 0.05 * router_ttft), abs(tpot - router_tpot) / (0.1 * router_tpot)))
        # 1 stands for 3 ms + 5 % of the TTFT, or 10 % of the TPOT.
        self.assertLess(sorted(rounds)[1], 1, "the median round is too far off: %s" % rounds)

    def test_full_stream_at_eight_streams(self):
        report = self.run_ghz("full_stream.json", "-n", "16")
        self.assertEqual(report["statusCodeDistribution"], {"OK": 16})

    def test_open_loop(self):
        report = self.run_ghz("open_loop.json", "-n", "8")
        self.assertEqual(report["statusCodeDistribution"], {"OK": 8})

    def test_cancelling_after_the_first_message_leaves_nothing_behind(self):
        self.run_ghz("full_stream.json", "-n", "8", "--stream-call-count", "1")
        deadline = time.monotonic() + 10
        while self.blocks_in_use() and time.monotonic() < deadline:
            pass  # What workers report is as old as the router's last look at them.
        self.assertEqual(self.blocks_in_use(), [])

    def test_the_two_data_files_differ_in_length_alone(self):
        full = json.loads((CONFIGS / "prompts_full.json").read_text())
        ttft = json.loads((CONFIGS / "prompts_ttft.json").read_text())
        self.assertEqual({row["stopping"].pop("max_tokens") for row in full}, {64})
        self.assertEqual({row["stopping"].pop("max_tokens") for row in ttft}, {1})
        self.assertEqual(full, ttft)

    def test_grpcurl_finds_everything_by_reflection(self):
        services = self.run_grpcurl(self.baton.address, "list").stdout.split()
        for service in ("baton.v1.Control", "baton.v1.Inference", "grpc.health.v1.Health"):
            self.assertIn(service, services)
        for service in ("", "baton.v1.Inference"):
            run = self.run_grpcurl("-d", json.dumps({"service": service}), self.baton.address, "grpc.health.v1.Health/Check")
            self.assertEqual(json.loads(run.stdout), {"status": "SERVING"}, run.stderr)

    def test_grpcurl_streams_an_answer_and_shows_the_timings(self):
        request = {"prompt": "Once upon a time", "sampling": {"temperature": 0}, "stopping": {"max_tokens": 8}}
        run = self.run_grpcurl(
            "-v", "-format", "json", "-d", json.dumps(request), self.baton.address, "baton.v1.Inference/GenerateStream"
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertRegex(run.stdout, r"(?m)^x-request-id: \S+")
        self.assertRegex(run.stdout, r"(?m)^server-timing: .*ttft;dur=[0-9.]+")
        self.assertRegex(run.stdout, r'"ttft_ms": [0-9.]+')
        self.assertRegex(run.stdout, r'"path": "SERVING_PATH_DISAGGREGATED"')
        self.assertRegex(run.stdout, r'"kv_bytes": [1-9]')

    def test_grpcurl_shows_a_refusal(self):
        request = {"prompt": "x", "sampling": {"top_p": 7}}
        run = self.run_grpcurl("-d", json.dumps(request), self.baton.address, "baton.v1.Inference/GenerateStream")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("InvalidArgument", run.stderr)
        self.assertIn("top_p", run.stderr)
        self.assertIn("7", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
