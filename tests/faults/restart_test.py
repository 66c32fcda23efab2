"""Workers that leave and come back under load: nothing fails and no answer changes."""

import os
import shutil
import sys
import tempfile
import time
import unittest

import stubs
from cluster import Call, Cluster
from load import Load

BINARIES = [os.path.abspath(path) for path in sys.argv[1:6]]
DISAGGREGATED = stubs.types_pb2.SERVING_PATH_DISAGGREGATED
AGGREGATED = stubs.types_pb2.SERVING_PATH_AGGREGATED
# Longer than both ends' keepalive: whoever closes idle connections has done so by then.
IDLE_SECONDS = 4.2


class RestartTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.cluster = Cluster(BINARIES[1:], folder)
        self.addCleanup(self.cluster.close)

    def call(self, stub):
        request = stubs.inference_pb2.GenerateRequest(prompt="the hello world")
        request.sampling.seed = 5
        request.stopping.max_tokens = 20
        request.stopping.ignore_eos = True
        request.response.return_tokens = True
        call = Call(stub, request).finish(20)
        self.assertEqual(call.code.name, "OK", call.text)
        return call

    def drain(self, process):
        self.assertEqual(process.terminate(), 0, "\n".join(process.log))

    def end(self, load):
        """The load's problems are the test's."""
        load.stop()
        self.assertEqual(load.problems, [])
        self.assertGreater(load.counts["requests"], 20)
        self.cluster.await_idle(2)
        print("%s" % dict(load.counts))

    def test_rolling_restart_of_all_workers(self):
        load = Load(self.cluster, seed=2, streams=4)
        try:
            for process in self.cluster.workers:
                before = process.instance
                self.drain(process)
                self.cluster.restart(process)  # at the same address
                self.assertNotEqual(process.instance, before)
                self.cluster.await_serving()
        finally:
            self.end(load)

    def test_prefill_scaled_to_zero_and_back(self):
        expected = self.call(self.cluster.router.inference())
        self.assertEqual(expected.last.timings.path, DISAGGREGATED)
        load = Load(self.cluster, seed=3, streams=3)
        try:
            for process in self.cluster.prefill:
                self.drain(process)
            alone = self.call(self.cluster.router.inference())
            self.assertEqual(alone.last.timings.path, AGGREGATED)
            self.assertEqual(alone.last.timings.path_reason, "no prefill worker serves")
            self.assertEqual(alone.tokens, expected.tokens)
            for process in self.cluster.prefill:
                self.cluster.restart(process)
            self.cluster.await_serving()
            self.assertEqual(self.call(self.cluster.router.inference()).last.timings.path, DISAGGREGATED)
        finally:
            self.end(load)

    def test_the_first_request_after_an_idle_while_is_served(self):
        stub = self.cluster.router.inference()
        expected = self.call(stub).tokens
        for _ in range(3):
            time.sleep(IDLE_SECONDS)
            self.assertEqual(self.call(stub).tokens, expected)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings="ignore")
