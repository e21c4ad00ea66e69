"""The race's ratios, merging, tables and chart (bench/peers/), on made-up results: no peer is needed.

Usage: race_test.py SOURCE_DIR"""

import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree
from pathlib import Path

SOURCE = Path(sys.argv.pop())
sys.path.insert(0, str(SOURCE / "bench/peers"))

import chart  # noqa: E402
import quiet  # noqa: E402
import report  # noqa: E402
import results  # noqa: E402
from cases import OURS_NATIVE, cannot, cases_of  # noqa: E402

CASES = {case.name: case for case in cases_of("qwen3-0.6b")}


def entry(values, cannot=None):
    return {"commit": "abc", "date": "2026-11-30T22:00:00+00:00", "cpu": "a CPU", "threads": 2, "values": values,
            "cannot": cannot or {}, "disturbed": 0}


def unit(cases, precision="q8"):
    about = {"orthrus": {"version": "orthrus 1", "flags": "avx512 kernels", "kv": "bf16"}}
    return {"model": "qwen3-0.6b", "precision": precision, "peers": about, "agreement": {}, "cases": cases}


class Ratios(unittest.TestCase):
    def test_speed_is_over_the_fastest_peer_by_medians(self):
        e = entry({"orthrus": [30, 24, 90], "llama.cpp": [10, 20, 21], "openvino": [15, 14, 99]})
        self.assertEqual((1.5, "llama.cpp"), results.ratio(CASES["decode"], e))

    def test_of_a_time_the_best_is_the_least(self):
        e = entry({"orthrus": [0.3], "llama.cpp": [0.4], "openvino": [2.0]})
        value, peer = results.ratio(CASES["load"], e)
        self.assertEqual("llama.cpp", peer)
        self.assertAlmostEqual(0.75, value)

    def test_the_dual_view_is_no_peer(self):
        e = entry({"orthrus": [10], "orthrus, dual view": [50], "llama.cpp": [5]})
        self.assertEqual((2.0, "llama.cpp"), results.ratio(CASES["decode"], e))

    def test_nothing_to_compare(self):
        self.assertIsNone(results.ratio(CASES["decode"], entry({"orthrus": [1]})))
        self.assertIsNone(results.ratio(CASES["decode"], entry({"llama.cpp": [1]})))

    def test_targets(self):
        self.assertEqual(2.0, CASES["decode-8"].target("q8"))
        self.assertTrue(results.reached(CASES["decode-8"], "q8", 2.0))
        self.assertFalse(results.reached(CASES["decode-8"], "q8", 1.99))
        self.assertIsNone(results.reached(CASES["decode-32"], "q8", 0.1))
        self.assertTrue(results.reached(CASES["load"], "q4", 0.9))
        self.assertFalse(results.reached(CASES["load"], "q4", 1.1))

    def test_tokens_a_second(self):
        case = CASES["decode-8"]
        self.assertEqual(("decode", 8, 128, 8), case.command)
        self.assertEqual(32.0, case.value(2.0))
        self.assertEqual(2.0, CASES["load"].value(2.0))


class Merging(unittest.TestCase):
    def test_a_case_run_again_replaces_the_one_before_as_a_whole(self):
        old = unit({"decode": entry({"orthrus": [1], "llama.cpp": [1]}), "load": entry({"orthrus": [2]})})
        new = unit({"decode": entry({"orthrus": [3]})})
        both = results.merged(old, new)
        self.assertEqual({"orthrus": [3]}, both["cases"]["decode"]["values"])
        self.assertEqual({"orthrus": [2]}, both["cases"]["load"]["values"])
        self.assertEqual(new, results.merged(None, new))

    def test_done_needs_the_repetitions_of_every_peer(self):
        u = unit({"decode": entry({"orthrus": [1, 1], "llama.cpp": [1]})})
        self.assertTrue(results.done(u, "decode", 1))
        self.assertFalse(results.done(u, "decode", 2))
        self.assertFalse(results.done(u, "load", 1))
        self.assertFalse(results.done(None, "decode", 1))

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results" / "qwen3-0.6b-q8.json"
            self.assertIsNone(results.read(path))
            u = unit({"decode": entry({"orthrus": [1]})})
            results.write(path, u)
            self.assertEqual(u, results.read(path))
            self.assertEqual({("qwen3-0.6b", "q8"): u}, report.read_all(path.parent))


class Report(unittest.TestCase):
    def setUp(self):
        self.units = {
            ("qwen3-0.6b", "q8"): unit({
                "decode": entry({"orthrus": [50, 60, 70], "llama.cpp": [40, 40, 41], "openvino": [20, 30, 40]},
                                {"ctranslate2": "ended at decode"}),
                "load": entry({"orthrus": [0.5], "llama.cpp": [0.4]}, {"openvino": "broken"})}),
            ("qwen3-0.6b", "q4"): unit({"decode-8": entry({"orthrus": [170], "llama.cpp": [100]},
                                                          {"ctranslate2": cannot("ctranslate2", "q4", "native")})}, "q4")}

    def test_table(self):
        text = report.report(self.units)
        self.assertIn("| decode, 1 row | 1.50 (llama.cpp, asked >= 1.2) | - |", text)
        self.assertIn("| decode, batch 8 | - | 1.70 (llama.cpp, asked >= 1.8 **missed**) |", text)
        self.assertIn("| load to first token | 1.25 (llama.cpp, asked <= 1 **missed**) | - |", text)
        self.assertIn("| decode, 1 row, tokens/s | 60.0 (50.0 to 70.0) | 40.0 (40.0 to 41.0) | 30.0 (20.0 to 40.0) | - |", text)
        self.assertIn("| load to first token, s | 0.500 (0.500 to 0.500) |", text)

    def test_every_dash_has_its_reason(self):
        text = report.report(self.units)
        self.assertIn("- ctranslate2 (decode, 1 row): ended at decode\n", text)
        self.assertIn("- openvino (load to first token): broken\n", text)
        self.assertIn("- ctranslate2: reads 4-bit weights (AWQ) on GPUs only\n", text)

    def test_engines_and_machine(self):
        text = report.report(self.units)
        self.assertIn("- orthrus: orthrus 1; avx512 kernels; KV cache bf16\n", text)
        self.assertIn("- a CPU, 2 threads; orthrus abc; 2026-11-30\n", text)

    def test_drafting(self):
        self.units["qwen3-0.6b", "q8"]["cases"]["text"] = entry({"orthrus": [100], "orthrus, dual view": [150], "llama.cpp": [80]})
        text = report.report(self.units)
        self.assertIn("| orthrus, dual view | 150.0 (150.0 to 150.0) |", text)
        self.assertIn("| llama.cpp, prompt lookup | - |", text)

    def test_chart(self):
        groups = report.bars(self.units)
        self.assertEqual(("qwen3-0.6b: decode, 1 row", [("q8", 1.5, 1.2)]), groups[0])
        label, [(_, value, target)] = groups[2]
        self.assertEqual(("qwen3-0.6b: load to first token", 0.8, 1.0), (label, value, target))  # times faster
        svg = ElementTree.fromstring(chart.bars("a < b", groups, ("bf16", "q8", "q4")))
        texts = [text.text for text in svg.iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("a < b", texts)
        self.assertIn("1.50", texts)


class Avx2(unittest.TestCase):
    """The race without AVX-512, with this engine's full speed beside it."""

    def setUp(self):
        e = entry({"orthrus": [50, 40, 60], OURS_NATIVE: [100, 90, 75], "llama.cpp": [55]}, {"openvino": cannot("openvino", "q8", "avx2")})
        load = entry({"orthrus": [0.3], OURS_NATIVE: [0.2]})
        self.units = {("qwen3-0.6b", "q8"): unit({"decode": e, "load": load}) | {"isa": "avx2"}}

    def test_the_full_speed_is_no_peer_but_a_measure(self):
        e = self.units["qwen3-0.6b", "q8"]["cases"]["decode"]
        self.assertEqual((50 / 55, "llama.cpp"), results.ratio(CASES["decode"], e))
        self.assertAlmostEqual(1.8, results.slower(CASES["decode"], e))
        self.assertAlmostEqual(1.5, results.slower(CASES["load"], self.units["qwen3-0.6b", "q8"]["cases"]["load"]))
        self.assertIsNone(results.slower(CASES["decode"], entry({"orthrus": [1], "llama.cpp": [1]})))

    def test_what_is_asked_and_what_cannot_run(self):
        cases = {case.name: case for case in cases_of("qwen3-0.6b", "avx2")}
        self.assertEqual(1.0, cases["decode"].target("q8"))
        self.assertIsNone(cases["decode-8"].target("q8"))
        self.assertEqual(CASES["decode-8"].command, cases["decode-8"].command)
        self.assertIsNone(cannot("openvino", "q8", "native"))
        self.assertIsNone(cannot("llama.cpp", "q8", "avx2"))
        self.assertIn("ONEDNN_MAX_CPU_ISA", cannot("openvino", "q8", "avx2"))

    def test_table(self):
        text = report.report(self.units)
        self.assertIn("# The race, avx2 alone\n", text)
        self.assertIn("| decode, 1 row | 0.91 (llama.cpp, asked >= 1 **missed**) |", text)
        self.assertIn("| our time : that with all instructions | q8 |", text)
        self.assertIn("| decode, 1 row | 1.80 (asked <= 1.6 **missed**) |", text)
        self.assertIn("| load to first token | 1.50 |", text)
        self.assertIn(f"| orthrus | {OURS_NATIVE} |", text)
        self.assertIn("- openvino (decode, 1 row): has no switch for it", text)


class Neighbours(unittest.TestCase):
    def test_what_disturbs(self):
        self.assertFalse(quiet.disturbs(2, 10))  # as fine as the clock's ticks
        self.assertTrue(quiet.disturbs(3, 10))
        self.assertFalse(quiet.disturbs(4, 100))
        self.assertTrue(quiet.disturbs(5, 100))


if __name__ == "__main__":
    unittest.main()
