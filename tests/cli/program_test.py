"""What the commands do with right input.

Usage: program_test.py PROGRAM SOURCE_ROOT [unittest arguments]."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile

from program import DEMO, PROGRAM, TINY, ProgramTest, main, orthrus


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

    def test_settings_are_those_that_ran(self):
        def settings(*arguments):
            return self.answer("-p", "Tom has", "-n", "2", *arguments)["settings"]
        cases = [((), ("bf16", "auto", "exact", 2)), (("--weights", "q8"), ("q8", "auto", "exact", 2)),
                 (("--draft-max", "500"), ("bf16", 7, "exact", 2)), (("--draft-max", "3"), ("bf16", 3, "exact", 2)),
                 (("--consensus", "kl"), ("bf16", 7, "kl", 2)), (("--view", "ar"), ("bf16", None, None, 2)),
                 (("-m", DEMO), ("q4_1", "auto", "exact", 2)), (("-m", DEMO, "--weights", "q8"), ("q4_1", "auto", "exact", 2)),
                 (("-m", DEMO, "--weights", "f32"), ("f32", "auto", "exact", 2))]
        for arguments, expected in cases:
            with self.subTest(arguments=arguments):
                found = settings(*arguments)
                self.assertEqual(tuple(found[k] for k in ("weights", "draft_max", "consensus", "max_tokens")), expected)
        report = self.answer("-p", "Tom has", "-n", "-1", "-c", "64")
        self.assertEqual(report["settings"]["max_tokens"], 64 - report["prompt_tokens"])
        self.assertEqual(report["settings"]["ubatch_size"], 64)

    def test_measurements_name_the_weights_that_ran(self):
        for asked, ran in (("auto", "bf16"), ("q4", "q4")):
            flags = ["-m", TINY, "--weights", asked, "--json"]
            report = json.loads(self.succeed("perplexity", *flags, "-f", "-", "-c", "16", stdin="Tom has 3 apples. " * 4))
            self.assertEqual(report["weights"], ran)
            report = json.loads(self.succeed("eval", *flags, "-n", "4", "--prompts", "-", stdin='{"prompt": "Tom"}'))
            self.assertEqual(report["settings"]["weights"], ran)

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

    def test_keys_of_the_caller_never_stand_for_those_of_the_result(self):
        line = {"prompt": "Tom", "id": "a", "error": "mine", "kl_mean": 7, "text": "mine", "question": "q"}
        result = json.loads(self.succeed("generate", "-m", TINY, "-n", "3", "--temp", "0", stdin=json.dumps(line)))
        self.assertEqual((result["id"], result["question"], result["completion_tokens"]), ("a", "q", 3))
        self.assertNotEqual(result["text"], "mine")
        self.assertFalse({"error", "kl_mean", "prompt"} & set(result))
        # Whatever a result may have.
        everything = [*Running.KEYS, "kl_mean", "conflict_rate"]
        line = {"prompt": "Tom", **{key: "mine" for key in everything if key != "token_ids"}}
        out = self.succeed("generate", "-m", TINY, "-n", "3", "--view", "ar", stdin=json.dumps(line))
        self.assertNotIn("mine", json.loads(out).values())
        self.refuse(1, r'stdin:1: the line has no prompt: expected "prompt", .* its keys are "text"$', "generate", "-m", TINY,
                    stdin='{"text": "Tom"}')

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
        self.assertEqual(self.succeed("template", "-m", TINY, stdin=json.dumps(json.loads(request)["messages"])), with_prompt)

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

    def test_inspect_shows_yarn(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(TINY, folder, dirs_exist_ok=True)
            path = os.path.join(folder, "config.json")
            with open(path) as file:
                config = json.load(file)
            config["rope_scaling"] = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512}
            with open(path, "w") as file:
                json.dump(config, file)
            report = json.loads(self.succeed("inspect", folder, "--json"))
            self.assertEqual(report["rope"]["yarn"]["factor"], 4)
            self.assertAlmostEqual(report["rope"]["attention_factor"], 1.1386294)
            self.assertEqual(report["max_position_embeddings"], 2048)
            self.assertIn("theta 10000, yarn: factor 4 over 512 tokens, attention factor 1.1386", self.succeed("inspect", folder))

    def test_plan(self):
        report = json.loads(self.succeed("plan", TINY, "-c", "512", "--batch", "8", "--budget", "1", "--json"))
        self.assertEqual(report["kv_bytes"], 2 * 4 * 2 * 64 * 2 * 512 * 8)
        self.assertEqual(report["article_kv_bytes"], 2 * 512 * 192 * 8 * 4 * 4)
        self.assertTrue(report["fits"])
        self.assertIn("fits: yes", self.succeed("plan", TINY, "--budget", "1"))
        small = orthrus("plan", TINY, "--budget", "0.01", "--json")
        self.assertEqual((small.returncode, small.stderr), (1, ""))
        self.assertFalse(json.loads(small.stdout)["fits"])
        self.assertIn("fits: no", orthrus("plan", TINY, "--budget", "0.01").stdout)

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
        auto, q8, q4 = (json.loads(self.succeed("inspect", TINY, "--json", "--draft-weights", "same", "--weights", w)) for w in ("bf16", "q8", "q4"))
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


if __name__ == "__main__":
    main()
