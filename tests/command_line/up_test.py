"""`baton up` from outside: it serves, it stops, and whatever ends it, no process of its own outlives it."""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

MAKE_TINY_MODEL = os.path.abspath(sys.argv[1])
BINARIES = [os.path.abspath(path) for path in sys.argv[2:6]]
BATON = BINARIES[0]


class Up:
    """One `baton up`; `lines` is what it has printed."""

    def __init__(self, folder, *flags):
        command = [BATON, "up", "--binaries", folder, "--model", folder + "/model.gguf"]
        self.process = subprocess.Popen(command + list(flags), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.address = None

    def read_until(self, pattern):
        """The match in the first line that has one; None when the output ends before."""
        for line in self.process.stdout:
            self.lines.append(line)
            found = re.search(pattern, line)
            if found:
                return found
        return None

    def wait_until_ready(self):
        found = self.read_until(r"^baton is ready on ([0-9.:]+)\. ")
        assert found, "baton up ended: %s" % "".join(self.lines)
        self.address = found.group(1)

    def children(self):
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid), encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    def end(self):
        """The exit status."""
        rest, _ = self.process.communicate(timeout=30)
        self.lines += rest.splitlines(True)
        return self.process.returncode


def name_of(pid):
    with open("/proc/%d/comm" % pid, encoding="ascii") as file:
        return file.read().strip()


def wait_for_end(handles):
    """Whether the processes have all ended within ten seconds."""
    for handle in handles:
        if not select.select([handle], [], [], 10)[0]:
            return False
    return True


class UpTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        for binary in BINARIES:
            os.symlink(binary, os.path.join(self.folder, os.path.basename(binary)))
        model = subprocess.check_output([MAKE_TINY_MODEL, "llama", "1", self.folder], text=True).strip()
        os.rename(model, self.folder + "/model.gguf")
        self.ups = []

    def tearDown(self):
        for up in self.ups:
            if up.process.poll() is None:
                up.process.kill()
            up.process.communicate()

    def start(self, *flags):
        small_pools = ["--prefill-flags=--kv-memory=16MiB", "--decode-flags=--kv-memory=16MiB"]
        self.ups.append(Up(self.folder, *small_pools, *flags))
        return self.ups[-1]

    def generate(self, up, *flags):
        run = subprocess.run(
            [BATON, "generate", "--server", up.address, "hello", "--max-tokens", "5", "--ignore-eos", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        return run

    def test_serves_and_ends_with_sigterm(self):
        up = self.start()
        up.wait_until_ready()
        children = up.children()
        self.assertEqual(sorted(map(name_of, children)), ["baton_decode", "baton_prefill", "baton_router"])
        handles = [os.pidfd_open(pid) for pid in children]
        run = self.generate(up)
        self.assertIn("TTFT", run.stderr)
        self.assertIn("5 tokens in the answer", run.stderr)
        self.assertIn("prefill and decode apart", run.stderr)
        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.end(), 0, "".join(up.lines))
        self.assertTrue(wait_for_end(handles))

    def test_several_workers_and_ctrl_c(self):
        up = self.start("--prefill", "2", "--decode", "2")
        up.wait_until_ready()
        self.assertEqual(len(up.children()), 5)
        status = subprocess.check_output([BATON, "status", "--server", up.address], text=True)
        self.assertEqual(len(re.findall(r"^(?:prefill|decode) .* serving ", status, re.MULTILINE)), 4, status)
        up.process.send_signal(signal.SIGINT)
        self.assertEqual(up.end(), 0, "".join(up.lines))

    def test_decode_workers_alone(self):
        up = self.start("--prefill", "0")
        up.wait_until_ready()
        self.assertIn("decode worker alone", self.generate(up).stderr)

    def test_a_worker_that_dies_ends_the_others(self):
        up = self.start()
        up.wait_until_ready()
        children = up.children()
        handles = [os.pidfd_open(pid) for pid in children]
        os.kill(next(pid for pid in children if name_of(pid) == "baton_decode"), signal.SIGKILL)
        self.assertEqual(up.end(), 1)
        self.assertIn("decode0 ended by itself: signal 9", "".join(up.lines))
        self.assertTrue(wait_for_end(handles))

    def test_killed_outright_it_takes_its_processes_with_it(self):
        up = self.start()
        up.wait_until_ready()
        handles = [os.pidfd_open(pid) for pid in up.children()]
        self.assertEqual(len(handles), 3)
        up.process.kill()
        self.assertTrue(wait_for_end(handles))

    def test_a_model_that_is_none_is_reported(self):
        with open(self.folder + "/model.gguf", "wb") as file:
            file.write(b"not a model")
        up = self.start()
        self.assertEqual(up.end(), 1)
        self.assertRegex("".join(up.lines), r"baton up: .*(prefill0|decode0|router) ended by itself: exit status 1")

    def test_services_that_are_not_there_are_named(self):
        os.unlink(self.folder + "/baton_decode")
        up = self.start()
        self.assertEqual(up.end(), 1)
        self.assertIn("there is no baton_decode in " + self.folder, "".join(up.lines))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
