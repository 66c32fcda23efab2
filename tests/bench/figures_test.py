"""The bench's arithmetic, and what is made from its figures, without running anything."""

import http.server
import json
import math
import statistics
import threading
import unittest
import xml.etree.ElementTree

import figures
import http_load
import render
import svg
import targets


def request(ttft_ms, tpot_ms, ok=True):
    return {"ok": ok, "ttft_ms": ttft_ms, "tpot_ms": tpot_ms}


class FiguresTest(unittest.TestCase):
    def test_percentiles_are_values_that_occurred(self):
        values = [30, 10, 20, 40]
        self.assertEqual(
            [figures.percentile(values, p) for p in (0, 25, 50, 51, 75, 99, 100)], [10, 10, 20, 30, 30, 40, 40]
        )
        self.assertIsNone(figures.percentile([], 50))
        self.assertEqual(figures.summary([2, 1])["mean"], 1.5)

    def test_a_ratio_is_the_median_of_the_rounds_ratios(self):
        rounds = [{"a": 2, "b": 1}, {"a": 30, "b": 10}, {"a": 8, "b": 2}, {"a": 5, "b": None}, {"a": 5, "b": 0}]
        self.assertEqual(figures.median_ratio(rounds, "a", "b"), 3)
        self.assertIsNone(figures.median_ratio([{"a": 1}], "a", "b"))

    def test_goodput_needs_both_limits_and_a_good_end(self):
        requests = [
            request(500, 30),
            request(501, 30),
            request(500, 31),
            request(400, None),
            request(400, 20, ok=False),
            request(None, None),
            request(2000, 100),
        ]
        self.assertEqual(figures.goodput(requests, 2.0), {"tight": 1.0, "medium": 2.0, "loose": 2.5})

    def test_no_good_request_is_zero(self):
        self.assertEqual(figures.goodput([request(9000, 30)], 1.0), {"tight": 0, "medium": 0, "loose": 0})

    def test_the_generator_is_split_mix(self):
        # From the reference implementation, seed 1234567.
        random = figures.SplitMix(1234567)
        self.assertEqual(
            [random.next() for _ in range(3)], [6457827717110365317, 3203168211198807973, 9817491932198370423]
        )

    def test_arrivals_have_the_rate_and_are_repeatable(self):
        times = figures.arrivals(4.0, 7, 20000)
        gaps = [b - a for a, b in zip([0.0] + times, times)]
        self.assertAlmostEqual(statistics.fmean(gaps), 0.25, delta=0.01)
        self.assertAlmostEqual(statistics.pstdev(gaps), 0.25, delta=0.01)
        self.assertEqual(times[:5], figures.arrivals(4.0, 7, 5))

    def test_lengths_have_the_quantiles(self):
        for quantiles in (figures.PROMPT_QUANTILES, figures.OUTPUT_QUANTILES):
            for share, tokens in quantiles:
                self.assertEqual(figures.length_at(share, quantiles, 1), tokens)
            lengths = [figures.length_at(i / 1000, quantiles, 3) for i in range(1, 1000)]
            self.assertEqual(lengths, sorted(lengths))
            self.assertGreaterEqual(lengths[0], 3)
        drawn = figures.mixed_lengths(3, 4000)
        for column, quantiles in enumerate((figures.PROMPT_QUANTILES, figures.OUTPUT_QUANTILES)):
            median = statistics.median(lengths[column] for lengths in drawn)
            self.assertTrue(math.isclose(median, quantiles[0][1], rel_tol=0.08), median)


class FakeLlamaServer(http.server.BaseHTTPRequestHandler):
    """Streams as many events as tokens were asked for; refuses a prompt that begins with 0."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(500 if request["prompt"][0] == 0 else 200)
        self.end_headers()
        for index in range(request["n_predict"]):
            self.wfile.write(b'data: {"index":%d,"content":" a","stop":false}\n\n' % index)
        self.wfile.write(b'data: {"content":"","stop":true}\n\n')

    def log_message(self, *arguments):
        pass


class HttpLoadTest(unittest.TestCase):
    def run_load(self, requests, timeout=30):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeLlamaServer)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            return http_load.run(server.server_port, requests, 1000.0, 1, timeout)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def test_every_token_is_an_event_and_the_end_is_none(self):
        records = self.run_load([([5, 6], 4), ([7], 1), ([8], 2)])
        self.assertEqual([len(record.events) for record in records], [4, 1, 2])
        self.assertTrue(all(record.ok for record in records))
        self.assertEqual([len(record.gaps_ms()) for record in records], [3, 0, 1])
        results = [record.result() for record in records]
        self.assertTrue(all(result["ttft_ms"] > 0 for result in results))
        self.assertIsNone(results[1]["tpot_ms"])
        self.assertAlmostEqual(results[0]["tpot_ms"], statistics.fmean(records[0].gaps_ms()))

    def test_a_refusal_and_a_late_start_are_no_good_end(self):
        records = self.run_load([([0], 4), ([5], 4)])
        self.assertEqual([record.ok for record in records], [False, True])
        self.assertEqual(records[0].result(), {"ok": False, "ttft_ms": None, "tpot_ms": None})
        self.assertFalse(self.run_load([([5], 4)], timeout=-1)[0].ok)


class RenderTest(unittest.TestCase):
    def test_a_chart_is_well_formed_and_shows_every_value(self):
        lines = svg.line_chart("Title <1>", "x", "y", {"a": [(1, 0), (2, 3.5)], "b": [(1, 2), (2, 0)]})
        bars = svg.bar_chart("Bars", "ratio", [("one", 2.5), ("two", 0), ("three", None)], mark=1)
        for chart in (lines, bars):
            root = xml.etree.ElementTree.fromstring(chart)
            self.assertTrue(root.tag.endswith("svg"))
        self.assertEqual(lines.count("<circle"), 4)
        self.assertIn("Title &lt;1&gt;", lines)
        self.assertIn(">2.50<", bars)
        self.assertIn(">0.00<", bars)

    def test_what_is_absent_is_a_dash_and_zero_is_zero(self):
        self.assertEqual(render.number(None), "–")
        self.assertEqual(render.number(0), "0")
        self.assertEqual(render.number(0.0), "0")
        self.assertEqual(render.number(1234.5), "1,234")
        self.assertEqual(render.number(12.34), "12.3")
        self.assertEqual(render.number(0.0123), "0.0123")

    def test_the_page_is_changed_between_its_marks_alone(self):
        page = "before\n%s\nold\n%s\nafter\n" % (render.BEGIN, render.END)
        changed = render.replace_between_marks(page, "new")
        self.assertEqual(changed, "before\n%s\n\nnew\n\n%s\nafter\n" % (render.BEGIN, render.END))
        with self.assertRaises(ValueError):
            render.replace_between_marks("no marks", "new")

    def test_parts_that_did_not_run_leave_nothing(self):
        text = render.markdown(json.loads('{"machine": {"name": "a machine"}, "parts": {}}'))
        self.assertIn("a machine", text)
        self.assertNotIn("##", text)


class TargetsTest(unittest.TestCase):
    def test_a_machine_is_known_by_its_features(self):
        self.assertEqual(targets.machine_kind(["avx2", "avx512_vnni", "amx_bf16"]), "amx")
        self.assertEqual(targets.machine_kind(["avx2", "avx512_vnni"]), "avx512")
        self.assertIsNone(targets.machine_kind(["avx2"]))

    def test_each_target_has_a_verdict(self):
        near, far = {"kl_mean": 0.001, "argmax_agreement": 0.98}, {"kl_mean": 0.002, "argmax_agreement": 0.97}
        cases = [
            {"name": "prefill 512", "ratio": 6.6},
            {"name": "prefill 2,048", "ratio": 4.5},
            {"name": "decode, 1 stream, depth 64", "ratio": 1.7},
        ]
        engine = {"smollm2": {"cases": cases, "agreement": {"baton": near, "llama_cpp": far}}, "date": "today"}
        within = [
            {"tokens": 64, "ttft_ms": 20, "handoff_ms": 1.2, "client_ttft_ms": 20.9},
            {"tokens": 2000, "ttft_ms": 1000, "handoff_ms": 9, "client_ttft_ms": 1021},
        ]
        results = {
            "machine": {"features": ["avx512_vnni"]},
            "parts": {
                "engine": engine,
                "interference": {"ways": {"disaggregated": {"p99_ratio": 1.2}}},
                "router": {"router_adds_p50": 0.14, "router_adds_p99": 0.7},
                "handoff": {"within": within},
            },
        }
        verdicts = [row[3] for row in targets.rows(results)]
        missed = "**missed**"
        self.assertEqual(verdicts, ["aim reached", "met", missed, "met", "met", "met", "met", missed, missed, missed])
        self.assertEqual(targets.rows({"machine": {"features": []}, "parts": {}}), [])


if __name__ == "__main__":
    unittest.main()
