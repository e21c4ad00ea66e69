"""`orthrus bench` as a program: what its JSON holds.

Usage: bench_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import json
import statistics

from program import DEMO, ROOT, TINY, ProgramTest, main

CASE_KEYS = ["name", "weights", "kv_type", "rows", "context", "seconds", "gbps", "gflops", "limit_seconds", "ratio_to_one_row",
             "ratio_to_limit"]
RATES = ["read_gbps", "fma_gflops", "int8_gops", "bf16_gflops"]


class Bench(ProgramTest):
    def bench(self, *arguments):
        return json.loads(self.succeed("bench", *arguments, "--reps", "1", "--json"))

    def test_cases_of_a_model(self):
        report = self.bench("-m", TINY, "--cases", "rows,decode,dual", "-t", "2")
        self.assertEqual(list(report), ["model", "draft_weights", "reps", "machine", "probes", "cases", "break_even", "warnings"])
        self.assertEqual(list(report["machine"]), ["cpu", "isa", "threads", *RATES])
        self.assertEqual((report["reps"], report["machine"]["threads"]), (1, 2))
        self.assertEqual(len(report["probes"]), 2)  # before and after the repetition
        for rate in RATES:
            values = [probe[rate] for probe in report["probes"]]
            self.assertGreater(min(values), 0)
            self.assertAlmostEqual(report["machine"][rate], statistics.median(values))
        found = [(c["name"], c["rows"], c["context"]) for c in report["cases"]]
        self.assertEqual(found, [("rows", rows, None) for rows in (1, 2, 4, 8, 16, 32, 64)] + [("decode", 1, 256)] +
                         [("dual", block, 256) for block in (2, 4, 8)])
        by_name = {(c["name"], c["rows"]): c for c in report["cases"]}
        for case in report["cases"]:
            self.assertEqual(list(case), CASE_KEYS)
            self.assertEqual(case["weights"], "bf16")
            for key in CASE_KEYS[5:]:
                self.assertGreater(case[key], 0, case)
            self.assertAlmostEqual(case["seconds"] / case["limit_seconds"], case["ratio_to_limit"])
            one = by_name["rows" if case["name"] == "rows" else "decode", 1]
            self.assertAlmostEqual(case["seconds"] / one["seconds"], case["ratio_to_one_row"])
        self.assertEqual([(even["block"], even["tokens_per_cycle"]) for even in report["break_even"]],
                         [(c["rows"], c["ratio_to_one_row"]) for c in report["cases"] if c["name"] == "dual"])

    def test_random_weights_of_a_shape(self):
        report = self.bench("--shape", "smollm2-135m", "--weights", "q8", "--cases", "rows")
        self.assertEqual(report["model"], "smollm2-135m")
        self.assertIn(report["draft_weights"], ("same", "q4"))  # q8 weights: as it pays here
        self.assertEqual([(c["rows"], c["weights"]) for c in report["cases"]],
                         [(rows, "q8") for rows in (1, 2, 4, 8, 16, 32, 64)])

    def test_the_weights_are_those_that_run(self):
        report = self.bench("-m", DEMO, "--weights", "q8", "--cases", "decode")
        self.assertEqual([c["weights"] for c in report["cases"]], ["q4_1", "q4_1"])

    def test_compare(self):
        held_out = ROOT / "models/smollm2-135m/recipe/held-out"
        report = self.bench("-m", TINY, "--compare", "ar,dual", "--limit", "1", "--prompts",
                            held_out / "chat.jsonl", held_out / "code.jsonl")
        self.assertEqual([result["name"] for result in report["compare"]],
                         ["short", "sampled", "long", "chat", "code"])
        for result in report["compare"]:
            self.assertIs(result["identical"], True)
            self.assertGreater(result["ratio_median"], 0)
            self.assertGreaterEqual(result["tokens_per_cycle"], 1)

    def test_compare_at_a_deep_context_of_random_weights(self):
        report = self.bench("--shape", "smollm2-135m", "--compare", "ar,dual", "-c", "600", "--draft-max", "4")
        self.assertEqual([(result["name"], result["prompt_tokens"], result["tokens"], result["identical"])
                          for result in report["compare"]], [("deep", 536, 64, True)])

    def test_contexts_have_bounds(self):
        for flags, found in ((("--compare", "ar,dual", "-c", "12288"), "found 12288 to compare at"), (("-c", "8192"), "found 8192 before a pass")):
            self.refuse(2, f"smollm2-135m has positions for 8192 tokens, {found}", "bench", "--shape", "smollm2-135m", *flags)


if __name__ == "__main__":
    main()
