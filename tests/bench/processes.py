"""The processes that the bench starts: each is ended with the `with` block that it belongs to."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Failure(Exception):
    """Something that was measured went wrong; its text is for people."""


def run(command, timeout=600):
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout, check=False
    )
    if done.returncode != 0:
        raise Failure("%s ended with %d: %s" % (os.path.basename(command[0]), done.returncode, done.stderr[-2000:]))
    return done.stdout


class Process:
    """A child process, and the last lines that it wrote to standard error."""

    def __init__(self, command, cwd=None):
        self.name = os.path.basename(command[0])
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, bufsize=1, cwd=cwd
        )

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.stop()

    def stop(self):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            with contextlib.suppress(BrokenPipeError):
                self.child.stdin.close()
            try:
                self.child.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()
        self.child.stdout.close()
        self.errors.close()

    def line(self):
        """The next line of its output; what it said last, as a Failure, when there is none."""
        line = self.child.stdout.readline()
        if not line:
            self.child.wait()
            self.errors.seek(0)
            raise Failure("%s ended with %d: %s" % (self.name, self.child.returncode, self.errors.read()[-2000:]))
        return line.rstrip("\n")

    def await_line(self, start):
        line = self.line()
        while not line.startswith(start):
            line = self.line()
        return line

    def drop_output(self):
        """From now on nobody reads lines: they must not fill the pipe."""
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        with contextlib.suppress(ValueError, OSError):
            for _ in self.child.stdout:
                pass

    def memory_bytes(self):
        """Resident memory of it and of the processes that it started."""
        pids, total = [self.child.pid], 0
        for pid in pids:
            with contextlib.suppress(OSError), open(
                "/proc/%d/task/%d/children" % (pid, pid), encoding="ascii"
            ) as children:
                pids += [int(child) for child in children.read().split()]
            with contextlib.suppress(OSError), open("/proc/%d/statm" % pid, encoding="ascii") as statm:
                total += int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return total


class Engine(Process):
    """An engine that takes a command a line and answers with a line of JSON: engine/engine_bench.cc says which."""

    def __init__(self, command):
        super().__init__(command)
        self.ready = json.loads(self.line())

    def ask(self, command):
        self.child.stdin.write(command + "\n")
        self.child.stdin.flush()
        answer = json.loads(self.line())
        if "error" in answer:
            raise Failure("%s: %s: %s" % (self.name, command, answer["error"]))
        return answer


class Baton(Process):
    """`baton up`, ready."""

    def __init__(self, binaries, model, *flags):
        self.address = "127.0.0.1:%d" % free_port()
        # `up` looks for the services in one folder.
        self.folder = tempfile.mkdtemp()
        for name in ("baton", "baton_router", "baton_prefill", "baton_decode"):
            os.symlink(binaries[name], os.path.join(self.folder, name))
        super().__init__(
            [binaries["baton"], "up", "--binaries", self.folder, "--model", model, "--port", self.address.split(":")[1]]
            + list(flags)
        )
        self.await_line("baton is ready on ")
        self.drop_output()

    def stop(self):
        super().stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class LlamaServer(Process):
    """llama.cpp's server, ready."""

    def __init__(self, binary, model, threads, slots, slot_tokens):
        self.port = free_port()
        super().__init__(
            [binary, "--model", model, "--host", "127.0.0.1", "--port", str(self.port)]
            + ["--threads", str(threads), "--threads-batch", str(threads), "--parallel", str(slots)]
            + ["--ctx-size", str(slots * slot_tokens), "--no-webui"]
        )
        self.drop_output()
        deadline = time.monotonic() + 120
        while not self._healthy():
            if self.child.poll() is not None or time.monotonic() > deadline:
                self.line()  # Says why.
                raise Failure("llama-server is not ready after two minutes")
            time.sleep(0.1)

    def _healthy(self):
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/health" % self.port, timeout=5) as page:
                return page.status == 200
        except (urllib.error.URLError, OSError):
            return False


def bench(binaries, address, *flags):
    """`baton bench` against a server: its report."""
    return json.loads(run([binaries["baton"], "bench", "--server", address, "--output", "json"] + list(flags)))


@contextlib.contextmanager
def background_bench(binaries, address, *flags):
    """`baton bench` beside whatever else runs; yields a function that waits for its report."""
    command = [binaries["baton"], "bench", "--server", address, "--output", "json"] + list(flags)
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def report():
        output, errors = child.communicate(timeout=600)
        if child.returncode != 0:
            raise Failure("baton bench ended with %d: %s" % (child.returncode, errors[-2000:]))
        return json.loads(output)

    try:
        yield report
    finally:
        if child.poll() is None:
            child.kill()
            child.communicate()
