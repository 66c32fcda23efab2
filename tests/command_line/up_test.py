"""`baton up` from outside: it serves, it stops, and whatever ends it, no process of its own outlives it; with
certificates of `baton certs` everything is encrypted and checked."""

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

    def certificates(self):
        """The folder of `baton certs`, and the flags of a client of that role."""
        folder = self.folder + "/certs"
        subprocess.run([BATON, "certs", folder], stdout=subprocess.DEVNULL, check=True)

        def flags(role):
            return ["--tls-ca", folder + "/ca.pem", "--tls-cert", f"{folder}/{role}.pem", "--tls-key", f"{folder}/{role}.key"]

        return folder, flags

    def refused(self, up, prompt, *flags):
        """What a call that must fail prints."""
        run = subprocess.run(
            [BATON, "generate", "--server", up.address, prompt, "--timeout", "5s", *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        return run.stderr

    def test_tls_on_every_connection(self):
        folder, flags = self.certificates()
        for name in os.listdir(folder):
            if name.endswith(".key"):
                self.assertEqual(os.stat(f"{folder}/{name}").st_mode & 0o777, 0o600, name)
        with open(folder + "/ca.pem", encoding="ascii") as file:
            authority = file.read()

        debug = [f"--{role}-flags=--log-level=debug" for role in ("router", "prefill", "decode")]
        up = self.start("--tls", folder, *debug)
        up.wait_until_ready()
        marked = "xylophone-4711"
        run = subprocess.run(
            [BATON, "generate", "--server", up.address, marked, "--max-tokens", "5", "--ignore-eos", *flags("client")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("prefill and decode apart", run.stderr)
        status = subprocess.check_output([BATON, "status", "--server", up.address, "--json", *flags("client")], text=True)
        self.assertIn('"identity": "spiffe://baton.local/prefill"', status)
        self.assertIn('"identity": "spiffe://baton.local/decode"', status)

        errors = [
            self.refused(up, marked),
            self.refused(up, marked, "--tls-ca", folder + "/ca.pem"),
            self.refused(up, marked, *flags("prefill")),
            self.refused(up, marked, *flags("decode")),
            self.refused(up, marked, *flags("client"), "--model", "another"),
            self.refused(up, marked * 2000, *flags("client")),
        ]
        self.assertIn("UNAVAILABLE", errors[0])
        self.assertIn("UNAUTHENTICATED: a certificate or a bearer token of this deployment is needed", errors[1])
        self.assertIn("PERMISSION_DENIED: the role prefill may not call this method here", errors[2])
        self.assertIn("UNAVAILABLE", errors[3])  # it is a certificate of a server alone
        self.assertIn("NOT_FOUND", errors[4])
        self.assertIn("INVALID_ARGUMENT", errors[5])

        # The same authority signs again: nothing that runs is disturbed.
        subprocess.run([BATON, "certs", folder], stdout=subprocess.DEVNULL, check=True)
        with open(folder + "/ca.pem", encoding="ascii") as file:
            self.assertEqual(file.read(), authority)
        self.generate(up, *flags("client"))

        up.process.send_signal(signal.SIGTERM)
        self.assertEqual(up.end(), 0, "".join(up.lines))
        told = "".join(up.lines + errors)
        self.assertIn("request_end", told)  # what would hold the prompt, if anything did
        for secret in (marked, "PRIVATE KEY"):
            self.assertNotIn(secret, told)

    def test_what_is_not_safe_does_not_start(self):
        def why(*flags):
            command = [self.folder + "/baton_decode", "--model", self.folder + "/model.gguf", "--kv-memory=16MiB"]
            run = subprocess.run(
                command + ["--metrics-listen=", *flags], stderr=subprocess.PIPE, text=True, timeout=60, check=False
            )
            self.assertEqual(run.returncode, 1, run.stderr)
            return run.stderr

        self.assertIn('advertise: needed because listen is "0.0.0.0:0"', why("--listen", "0.0.0.0:0"))
        self.assertIn("advertise:", why("--listen", "127.0.0.1:0", "--advertise", "0.0.0.0:1"))
        abroad = why("--listen", "0.0.0.0:0", "--advertise", "decode.example:1")
        self.assertIn("the connection is not encrypted; give --tls-ca", abroad)
        _, flags = self.certificates()
        self.assertIn("tls-key is needed", why(*flags("decode")[:4]))
        self.assertIn("its one URI must be", why(*flags("decode"), "--tls-identity-prefix", "spiffe://elsewhere/"))

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
