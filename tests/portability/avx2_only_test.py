"""The release binaries on an emulated processor that has AVX2 and no AVX-512.

An instruction of a higher level anywhere but in kernels that are chosen at run time ends a process with SIGILL. And the answer must
be the one that this machine's own level gives: a processor changes the speed, never the bits.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

MAKE_TINY_MODEL, BATON, ROUTER, PREFILL, DECODE = sys.argv[1:6]
EMULATOR = ["qemu-x86_64-static", "-cpu", "max"]


def free_address():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % probe.getsockname()[1]


class Avx2OnlyTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.processes = []

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            output, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, output)
        self.processes = []

    def tearDown(self):
        for process in self.processes:
            process.kill()
            process.communicate()

    def start(self, command, *flags):
        """Starts a service and waits until it says that it is ready; returns its address."""
        address = free_address()
        process = subprocess.Popen(
            command + ["--listen", address, "--metrics-listen", "127.0.0.1:0", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.processes.append(process)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if " ready role=" in line:
                return address
        self.fail("%s ended: %s" % (command, "".join(lines)))

    def wait_until_serving(self, router, workers):
        deadline = time.monotonic() + 60
        status = ""
        while time.monotonic() < deadline:
            status = subprocess.check_output([BATON, "status", "--server", router, "--json"], text=True)
            if status.count("WORKER_STATE_SERVING") == workers:
                return
        self.fail("not all workers serve: " + status)

    def answer(self, emulator, model):
        """Token ids of a greedy answer, with both workers under `emulator`."""
        worker_flags = ["--model", model, "--kv-memory", "16MiB", "--threads", "1"]
        prefill = self.start(emulator + [PREFILL], *worker_flags)
        decode = self.start(emulator + [DECODE], *worker_flags)
        # An emulated step may take seconds, which must not pass for a lost worker.
        patience = ["--leg-silence", "60s"]
        router = self.start([ROUTER], "--model", model, "--prefill", prefill, "--decode", decode, *patience)
        self.wait_until_serving(router, 2)
        prompt = "A prompt of several tokens, so that more than one row is computed at once."
        run = subprocess.run(
            [BATON, "generate", "--server", router, prompt, "--json", "--quiet"]
            + ["--max-tokens", "24", "--ignore-eos", "--temperature", "0", "--keep-special-tokens"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        messages = [json.loads(line) for line in run.stdout.splitlines()]
        self.assertEqual(messages[-1]["timings"]["path"], "SERVING_PATH_DISAGGREGATED")
        self.assertEqual(sum(message.get("count", 0) for message in messages), 24)
        self.stop()
        return "".join(message.get("text", "") for message in messages)

    def compare(self, architecture):
        model = subprocess.check_output([MAKE_TINY_MODEL, architecture, "1", self.folder], text=True).strip()
        emulated = self.answer(EMULATOR, model)
        self.assertEqual(emulated, self.answer([], model))

    def test_llama(self):
        self.compare("llama")

    def test_gemma3(self):
        self.compare("gemma3")

    def test_the_client_runs(self):
        version = subprocess.check_output(EMULATOR + [BATON, "--version"], text=True)
        self.assertRegex(version, r"^baton \d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
