"""Runs every snippet of the README against the real services, as a reader would."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MAKE_MODEL, CPP_SNIPPET = (os.path.abspath(path) for path in sys.argv[1:3])
BINARIES = [os.path.abspath(path) for path in sys.argv[3:7]]
README = pathlib.Path("README.md").read_text(encoding="utf-8")
PROTO = pathlib.Path("proto").resolve()
ADDRESS = "127.0.0.1:7600"  # as the README writes it


def snippet(name):
    """The code block that follows the marker of this name."""
    return re.search(r"<!-- snippet: %s -->\n```\w+\n(.*?)```" % name, README, re.DOTALL).group(1)


def tool(variable):
    path = os.environ.get(variable, "")
    if not os.access(path, os.X_OK):
        raise AssertionError("%s does not name a program: run tools/test, which fetches it" % variable)
    return path


class ReadmeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp()
        subprocess.run([MAKE_MODEL, "llama", "1", cls.folder], check=True, stdout=subprocess.DEVNULL)
        (model,) = pathlib.Path(cls.folder).glob("*.gguf")
        for binary in BINARIES:
            os.symlink(binary, os.path.join(cls.folder, os.path.basename(binary)))
        cls.up = subprocess.Popen(
            [BINARIES[0], "up", "--binaries", cls.folder, "--model", str(model)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        log = []
        for line in cls.up.stdout:
            log.append(line)
            ready = re.match(r"baton is ready on (\S+)", line)
            if ready:
                cls.address = ready.group(1).rstrip(".,")
                return
        raise AssertionError("baton up ended: " + "".join(log))

    @classmethod
    def tearDownClass(cls):
        cls.up.terminate()
        cls.up.stdout.read()
        cls.up.wait(timeout=30)

    def run_snippet(self, command, **kwargs):
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, **kwargs)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_grpcurl(self):
        os.symlink(tool("BATON_GRPCURL"), os.path.join(self.folder, "grpcurl"))
        path = self.folder + ":" + os.environ["PATH"]
        output = self.run_snippet(
            ["bash", "-euc", snippet("grpcurl").replace(ADDRESS, self.address)], env={**os.environ, "PATH": path}
        )
        # The tiny model draws at random and may end early.
        self.assertRegex(output, r'"completion_tokens": \d+')
        self.assertIn('"ttft_ms"', output)

    def test_python(self):
        protos = [str(PROTO / "baton/v1" / name) for name in ("types.proto", "inference.proto")]
        python, stubs = tool("BATON_PYTHON"), tempfile.mkdtemp()
        self.run_snippet(
            [python, "-m", "grpc_tools.protoc", "-I%s" % PROTO, "--python_out=" + stubs, "--grpc_python_out=" + stubs]
            + protos
        )
        output = self.run_snippet([python, "-c", snippet("python").replace(ADDRESS, self.address)], cwd=stubs)
        self.assertRegex(output, r"\nTTFT \d+\.\d ms, TPOT \d+\.\d ms\n$")

    def test_cpp(self):
        source = pathlib.Path("tests/readme/snippet.cc").read_text(encoding="utf-8")
        self.assertEqual(source, snippet("cpp"), "tests/readme/snippet.cc is the README's C++ snippet")
        self.assertRegex(self.run_snippet([CPP_SNIPPET, self.address]), r"\ndone, TTFT \d+\.\d ms\n$")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
